# SPDX-License-Identifier: MIT
"""Many clients that feed concurrently and record the answers, and a proof of the result.

A `Load` records every feed: its engine, its body, its key, and the answer if there was one.  A feed
without an answer may or may not have been processed; with a key it may be sent again, and must then
count once.  `settle` sends feeds without an answer again; `prove` derives the order of the bodies
from the answers (the engine's tokens after each), computes the expected result with the oracle, and
compares engines, batches and repeated answers with it.
"""

import random
import threading
import time
from dataclasses import dataclass, field

import contract
from api import Api, Gone, report_of
from harness import oracle, pack
from model import batches_by_oracle, by_oracle, in_order, plan_of
from serving import wait_until
from wire import ANSWER_S

ENGINES = {
    "stream": oracle.Config(vocab=50257, nodes=12, batch=64),
    "batch": oracle.Config(vocab=1000, nodes=5, batch=50, positions="batch"),
    "lattice": oracle.Config(vocab=2, nodes=3, batch=4096, lattice=(3, 10, 100, 1000)),
}


REFUSALS = ("position-mismatch", "busy", "stopping", "read-only", "too-many-connections")
LAST_WORDS = ("damaged", "internal")  # of a server whose disk has failed


@dataclass
class Feed:
    engine: str
    key: str
    tokens: list
    dtype: str
    answer: dict = None
    answered_at: float = 0.0


@dataclass
class Load:
    """large: how many of a thousand bodies are larger than 64 KiB and therefore not queued."""

    server: object
    seed: str
    threads: int = 6
    large: int = 15
    pause: float = 0.0
    token: str = None
    feeds: list = field(default_factory=list)
    refused: dict = field(default_factory=dict)  # problem kind: count
    broken: list = field(default_factory=list)  # failures of the test

    def __post_init__(self):
        self.lock = threading.Lock()
        self.is_over = threading.Event()  # clients end after their current request
        self.may_go = threading.Event()  # the server may end; then clients end as well
        self.running = []
        self.began = 0

    def create(self) -> "Load":
        api = Api(self.server, self.token)
        for name, config in ENGINES.items():
            answer = api.create(name, **plan_of(config))
            assert answer.status == 201, answer
        api.close()
        return self

    # Sending.

    def _new_feed(self, rng) -> Feed:
        dtype = rng.choice(("u8", "u16", "u32", "i32", "i64"))
        count = rng.randint(1, 120)
        if rng.randrange(1000) < self.large:
            count = rng.randint(66000, 70000) // min(4, len(pack([0], dtype)))
        with self.lock:
            self.began += 1
            key = f"{self.seed}/{self.began}".replace(" ", "-")
            feed = Feed(rng.choice(list(ENGINES)), key, [], dtype)
            self.feeds.append(feed)
        feed.tokens = [rng.randrange(256) for _ in range(count)]
        return feed

    def _try(self, api, feed, rng, is_settling=False) -> bool:
        """One attempt; True if there was a final answer."""
        body = pack(feed.tokens, feed.dtype)
        cuts = [rng.randint(1, 20000)] if rng.random() < 0.3 else None
        answer = api.feed(feed.engine, body, dtype=feed.dtype, key=feed.key, cuts=cuts)
        if answer.status == 200:
            feed.answered_at = time.monotonic()
            feed.answer = answer.json
            return True
        kind = contract.kind(answer)
        with self.lock:
            self.refused[kind] = self.refused.get(kind, 0) + 1
        may_die = self.may_go.is_set() and not is_settling
        if kind not in REFUSALS + (LAST_WORDS if may_die else ()):
            raise AssertionError(f"an unexpected refusal of a feed: {answer}")
        return False

    def _work(self, number):
        rng = random.Random(f"{self.seed} {number} {self.began}")
        api = Api(self.server, self.token)
        feed = None
        try:
            while not self.is_over.is_set():
                feed = feed or self._new_feed(rng)
                if self._try(api, feed, rng):
                    feed = None
                time.sleep(self.pause)
        except (Gone, ConnectionError, OSError) as why:
            if not self.may_go.is_set():
                self.broken.append(f"the server went away before it was told to: {why!r}")
        except Exception as why:  # pylint: disable=broad-except
            self.broken.append(repr(why))
        api.close()

    def start(self) -> "Load":
        self.is_over.clear()
        self.may_go.clear()
        self.running = [threading.Thread(target=self._work, args=(k,), daemon=True)
                        for k in range(self.threads)]
        for thread in self.running:
            thread.start()
        return self

    def answered(self) -> int:
        return sum(1 for feed in list(self.feeds) if feed.answer)

    def run_until(self, count, seconds=ANSWER_S) -> "Load":
        """Continues until that many more feeds were answered."""
        goal, end = self.answered() + count, time.monotonic() + seconds
        while self.answered() < goal and not self.broken and time.monotonic() < end:
            time.sleep(0.005)
        assert not self.broken, self.broken
        assert self.answered() > goal - count, f"no feed was answered in {seconds} s"
        return self

    def announce(self) -> "Load":
        """From now on the server may end; clients feed until it does."""
        self.may_go.set()
        return self

    def join(self) -> "Load":
        self.is_over.set()
        for thread in self.running:
            thread.join(2 * ANSWER_S)
            assert not thread.is_alive(), "a client hangs"
        assert not self.broken, self.broken
        return self

    def forget_since(self, moment):
        """Discards answers received after the simulated power failure."""
        for feed in self.feeds:
            if feed.answered_at > moment:
                feed.answer = None

    # Proving.

    def pending(self) -> list:
        return [feed for feed in self.feeds if feed.answer is None and feed.tokens]

    def settle(self) -> int:
        """Sends feeds without an answer again, with the same key; returns how many had been fed
        before."""
        api, rng, known = Api(self.server, self.token), random.Random(self.seed), 0
        for feed in self.pending():
            wait_until(f"an answer for {feed.key}",
                       lambda f=feed: self._try(api, f, rng, is_settling=True))
            known += feed.answer["repeated"]
        api.close()
        return known

    def ordered(self, name) -> list:
        return in_order((feed.tokens, feed.answer) for feed in self.feeds
                        if feed.engine == name and feed.answer)

    def prove(self):
        """Every answered feed is present exactly once, and the engines have the expected state."""
        api = Api(self.server, self.token)
        for name, config in ENGINES.items():
            bodies = self.ordered(name)
            found = api.engine(name)
            expected = by_oracle(config, bodies)
            assert report_of(found) == expected, f"{name}: {report_of(found)}, not {expected}"
            assert found["feeds"] == len(bodies), (name, found["feeds"], len(bodies))
            self._prove_batches(api, name, batches_by_oracle(config, bodies))
        self._prove_repeats(api)
        api.close()

    @staticmethod
    def _prove_batches(api, name, expected):
        rows = []
        while True:
            page = api.get(f"/v1/engines/{name}/batches?since={len(rows)}&limit=10000").json
            rows += page["batches"]
            assert page["total"] == len(expected), (name, page["total"], len(expected))
            if page["next"] == page["total"]:
                break
            assert page["batches"] and page["next"] == len(rows), (name, page["next"], len(rows))
        wrong = [(a, b) for a, b in zip(rows, expected) if a != b]
        assert rows == expected, (name, len(rows), len(expected), wrong[:2])

    def _prove_repeats(self, api, samples=30):
        """A repeated key gets the first answer, word for word."""
        done = [feed for feed in self.feeds if feed.answer]
        for feed in random.Random(self.seed).sample(done, min(samples, len(done))):
            again = api.feed(feed.engine, pack(feed.tokens, feed.dtype), dtype=feed.dtype,
                             key=feed.key)
            assert again.status == 200, again
            assert again.json == dict(feed.answer, repeated=True), (again.json, feed.answer)
