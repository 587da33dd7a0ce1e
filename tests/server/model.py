# SPDX-License-Identifier: MIT
"""The expected report of an engine after a sequence of bodies.

There are two models, independent of each other and of the server.  `by_oracle` is the plain Python
of tests/oracle, for up to a few million tokens.  `by_command` is `iron feed --resume`, one process
per body, for bodies of any length.  Both begin a new batch with every body, like the server.
"""

from harness import iron, oracle, parse_json, unpack


def plan_of(config: oracle.Config) -> dict:
    """The document that creates an engine of this configuration."""
    return {"nodes": config.nodes, "vocab": config.vocab, "batch": config.batch,
            "positions": config.positions, "lattice": list(config.lattice)}


def by_oracle(config: oracle.Config, bodies) -> dict:
    """bodies: lists of tokens."""
    engine, stream = oracle.Engine(config), []
    for tokens in bodies:
        engine.feed(tokens)
        stream += tokens
    return dict(engine.report(), seal=oracle.seal(stream))


def batches_by_oracle(config: oracle.Config, bodies) -> list:
    """The rows that GET .../batches must return."""
    rows, position = [], 0
    for tokens in bodies:
        for first in range(0, len(tokens), config.batch):
            part = tokens[first:first + config.batch]
            counted = oracle.contribution(
                part, position if config.positions == "stream" else 0, config.vocab)
            rows.append({"batch": len(rows), "position": position, "tokens": counted.count,
                         "xor": f"{counted.xor:08x}", "sum": str(counted.sum)})
            position += len(part)
    return rows


def by_command(config: oracle.Config, files, folder) -> dict:
    """files: (path, dtype).  Returns the output of the last run."""
    state = folder / "serial.state"
    state.unlink(missing_ok=True)
    report = None
    for path, dtype in files:
        # later runs take the lattice and the other options from the state
        start = ["--resume", state] if state.exists() else [
            "--vocab", config.vocab, "--nodes", config.nodes, "--batch", config.batch,
            "--positions", config.positions, "--lattice", ",".join(map(str, config.lattice))]
        done = iron("feed", path, "--format", "raw", "--dtype", dtype, "--backend", "cpu",
                    "--seal", "--state", state, *start, "--json")
        assert done.code == 0, str(done)
        report = parse_json(done.out)
    return report


def in_order(answered) -> list:
    """Sorts bodies by their commits, which the answers show: pairs of (tokens, answer). They must
    be contiguous from 0."""
    rows = sorted(((answer["tokens"], tokens) for tokens, answer in answered if tokens),
                  key=lambda row: row[0])
    position = 0
    for after, tokens in rows:
        position += len(tokens)
        assert position == after, f"a body of {len(tokens)} ends at {after}, not at {position}"
    return [tokens for _, tokens in rows]


def tokens_of(body: bytes, dtype="u32") -> list:
    return unpack(body, dtype)
