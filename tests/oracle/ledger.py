# SPDX-License-Identifier: MIT
"""Writes ledgers as docs/ledger.md describes the file, and says what is wrong with a run, by definition.

A run is a list of generations: {"world": W, "ranks": {rank: [Record, ...]}}.
"""

import functools
import struct
import zlib
from collections import namedtuple

import oracle

Record = namedtuple("Record", "step samples micro epoch", defaults=(0, 0))


@functools.lru_cache(maxsize=None)
def halves(tokens):
    words = oracle.seal_words(tokens)
    return oracle.seal_half(0, words), oracle.seal_half(1, words)


def bag(samples):
    """(hi, lo, count)"""
    seals = [halves(tuple(sample)) for sample in samples]
    return sum(s[0] for s in seals) % 2**64, sum(s[1] for s in seals) % 2**64, len(seals)


def header(rank, world, time_ns=0, flags=0):
    data = b"IRONLDGR" + struct.pack("<IIIIQI", 1, 64, rank, world, time_ns, flags)
    data += bytes(60 - len(data))
    return data + struct.pack("<I", zlib.crc32(data))


def frame(kind, payload):
    head = struct.pack("<II", kind, len(payload))
    return head + struct.pack("<II", zlib.crc32(head) ^ zlib.crc32(payload), 0) + payload


def step(record, with_samples=True, time_ns=0):
    tokens = tuple(token for sample in record.samples for token in sample)
    payload = struct.pack("<QIIQQQQQQQ", record.step, record.micro, record.epoch, len(tokens),
                          *halves(tokens), *bag(record.samples), time_ns)
    for sample in record.samples if with_samples else ():
        payload += struct.pack("<QQ", *halves(tuple(sample)))
    return frame(1, payload)


def resume(world, time_ns=0):
    return frame(2, struct.pack("<IIQ", world, 0, time_ns))


def end(time_ns=0):
    return frame(3, struct.pack("<Q", time_ns))


def files(run, with_samples=True):
    """{rank: the bytes of its ledger}"""
    made = {}
    for at, generation in enumerate(run):
        for rank, records in sorted(generation["ranks"].items()):
            begin = made.get(rank)
            made[rank] = (header(rank, generation["world"], at * 10**9,
                                 0 if with_samples else 1) if begin is None
                          else begin + resume(generation["world"], at * 10**9))
            made[rank] += b"".join(step(record, with_samples) for record in records)
    return made


def counted(run):
    """[(generation, rank, record)] that count, and those that do not, in the order of steps and ranks."""
    latest, rest = {}, []
    for g, generation in enumerate(run):
        begun = [r.step for records in generation["ranks"].values() for r in records]
        if begun:
            for key in [key for key in latest if key[0] >= min(begun)]:
                if latest[key][0] < g:
                    rest.append(latest.pop(key))
        for rank, records in generation["ranks"].items():
            for record in records:
                key = (record.step, rank, record.micro)
                if key in latest:
                    rest.append(latest.pop(key))
                latest[key] = (g, rank, record)
    return [latest[key] for key in sorted(latest)], rest


def units(records):
    """{(step, rank): [Record, ...]}, sorted."""
    made = {}
    for _, rank, record in records:
        made.setdefault((record.step, rank), []).append(record)
    return dict(sorted(made.items()))


def check(run):
    """The findings about what repeats: sorted (kind, step, rank, first_step, first_rank, count)."""
    now, _ = counted(run)
    found, whole, seen = [], {}, {}
    for (at, rank), records in units(now).items():
        samples = [tuple(s) for record in records for s in record.samples]
        epoch = records[0].epoch
        key = epoch, bag(samples)
        if any(samples):
            same = whole.setdefault(key, [])
            peers = [place for place in same if place[0] == at]
            first = (peers or same or [None])[0]
            same.append((at, rank))
            if first:
                found.append(("same-on-ranks" if peers else "repeated-step", at, rank, *first,
                              len(samples)))
                continue
        firsts = []
        for record in records:
            for sample in filter(None, record.samples):
                key = record.epoch, tuple(sample)
                if key in seen:
                    firsts.append(seen[key])
                else:
                    seen[key] = at, rank
        if firsts:
            found.append(("repeated-sample", at, rank, *min(firsts), len(firsts)))
    return sorted(found)
