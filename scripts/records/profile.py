"""profile: Nsight Compute's counters for one launch of each champion.

The tool writes a table with a row of names, a row of units and a row for each launch; units change
with the size of the figure, so they are read, never assumed.
"""
import csv
import json
import os

SCALES = {"": 1.0, "%": 1.0, "nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3,
          "second": 1e6, "s": 1e6, "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
          "inst": 1.0, "warp": 1.0, "register/thread": 1.0, "block": 1.0}
FIGURES = {  # our name: the counter's; times are microseconds
    "time_us": "gpu__time_duration.sum",
    "bytes_read": "dram__bytes_read.sum",
    "bytes_written": "dram__bytes_write.sum",
    "memory_percent": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_percent": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "compute_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "groups": "launch__grid_size",
    "threads": "launch__block_size",
}
STALL = "smsp__average_warps_issue_stalled_"
# What a warp waits for, in words; only the counters that were seen to matter.
WAITS = {"long_scoreboard": "memory", "short_scoreboard": "local memory's answer", "barrier": "a barrier",
         "math_pipe_throttle": "the arithmetic units", "mio_throttle": "the way to local memory",
         "lg_throttle": "the way to memory", "wait": "its own last instruction", "not_selected": "its turn",
         "selected": "nothing", "branch_resolving": "a branch", "dispatch_stall": "the dispatcher",
         "no_instruction": "instructions", "membar": "a fence", "drain": "its stores", "sleeping": "a sleep",
         "imc_miss": "constants", "tex_throttle": "the texture unit", "misc": "other things"}


def number(text, unit):
    value = float(text.replace(",", ""))
    if unit not in SCALES:
        raise ValueError(f"the profile has the unit '{unit}', which is not known; add it to records/profile.py")
    return value * SCALES[unit]


def parse(text):
    """name -> figure of the first launch, and the kernel's name; {} if nothing was launched."""
    rows = [r for r in csv.reader(line for line in text.splitlines() if line.startswith('"'))]
    if len(rows) < 3:
        return {}
    names, units, values = rows[0], rows[1], rows[2]
    at = {name: k for k, name in enumerate(names)}
    found = {"kernel": values[at["Kernel Name"]].split("(")[0]}
    for name, counter in FIGURES.items():
        known = counter in at and values[at[counter]] not in ("", "n/a")
        found[name] = number(values[at[counter]], units[at[counter]]) if known else None
    stalls = {n.removeprefix(STALL).split("_per_issue")[0]: number(values[k], units[k])
              for n, k in at.items() if n.startswith(STALL) and values[k] not in ("", "n/a")}
    total = sum(stalls.values())
    found["waits"] = {WAITS.get(n, n): 100.0 * v / total
                      for n, v in sorted(stalls.items(), key=lambda item: -item[1]) if total and v / total >= 0.02}
    return found


def useful(document):
    row = document["results"][0]
    return {"contender": f"{row['op']}.{row['backend']}.{row['contender']}", "size": row["size"], "dtype": row["dtype"],
            "params": row["params"], "useful_bytes": row["useful_bytes"]}


def read_all(folder):
    found = []
    for name in sorted(n for n in os.listdir(folder) if n.startswith("profile-") and n.endswith(".csv")):
        stem = name.removesuffix(".csv")
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            figures = parse(file.read())
        if figures and os.path.exists(os.path.join(folder, stem + ".json")):
            with open(os.path.join(folder, stem + ".json"), encoding="utf-8") as file:
                document = json.load(file)
            found.append({"name": stem.removeprefix("profile-"), **useful(document), **figures})
            if figures["kernel"].startswith("ceilings_"):
                found[-1]["useful_bytes"] = None  # the ceiling has its own buffer
    return found
