#!/usr/bin/env python3
"""How many requests a second SimPy serves of the disk that weir's simulator serves, at the same load.

python crates/simulator/benches/simpy_peer.py OURS.json

OURS.json is what `bench_simulator` printed for profile seagate-elite3 and policy scan. The model here is
written independently: one zone of 99 sectors, 21 heads, the seek curve of Lee and Katz through minimum,
average and maximum, the platter's position from the time, SCAN over cylinders; no skew, no buffer. Its mean
response is printed beside weir's, so that it can be seen that both serve much the same disk.
"""

import json
import random
import statistics
import sys
import time
from math import sqrt
from pathlib import Path

import simpy

CYLINDERS, HEADS, SECTORS = 2627, 21, 99
SEEK_MIN_MS, SEEK_AVG_MS, SEEK_MAX_MS = 1.7, 11.0, 22.5
REVOLUTION_MS = 11.1
READ_SECTORS = 8
REQUESTS = 100_000
ROUNDS = 5


def seek_curve():
    """Times in ms by distance: a sqrt(x - 1) + b (x - 1) + c, with the given least, mean and greatest."""
    longest = CYLINDERS - 2
    pairs = CYLINDERS * (CYLINDERS - 1) / 2
    weights = [(CYLINDERS - x) / pairs for x in range(1, CYLINDERS)]
    root = sum(w * sqrt(x) for x, w in enumerate(weights))
    line = sum(w * x for x, w in enumerate(weights))
    rise, mean = SEEK_MAX_MS - SEEK_MIN_MS, SEEK_AVG_MS - SEEK_MIN_MS
    determinant = sqrt(longest) * line - longest * root
    a = (rise * line - longest * mean) / determinant
    b = (sqrt(longest) * mean - root * rise) / determinant
    return [0.0] + [a * sqrt(x) + b * x + SEEK_MIN_MS for x in range(CYLINDERS - 1)]


class Disk:
    """A disk under SCAN, as SimPy processes."""

    def __init__(self, env, seeks):
        self.env, self.seeks = env, seeks
        self.waiting, self.wake = [], None
        self.cylinder, self.upwards = 0, True
        self.response_ms = 0.0
        env.process(self.serve())

    def submit(self, sector):
        """A read arrives."""
        self.waiting.append((sector, self.env.now))
        if self.wake is not None:
            self.wake.succeed()
            self.wake = None

    def choose(self):
        """The next one in the direction of the sweep; the sweep turns where there is none."""
        place = self.cylinder * HEADS * SECTORS
        for _ in range(2):
            if self.upwards:
                ahead = [request for request in self.waiting if request[0] >= place]
                found = min(ahead, default=None)
            else:
                ahead = [request for request in self.waiting if request[0] < place + HEADS * SECTORS]
                found = max(ahead, default=None)
            if found is not None:
                self.waiting.remove(found)
                return found
            self.upwards = not self.upwards
        raise RuntimeError("nothing waits")

    def serve(self):
        """Serves one request after the other."""
        sector_ms = REVOLUTION_MS / SECTORS
        while True:
            if not self.waiting:
                self.wake = self.env.event()
                yield self.wake
            sector, arrived_ms = self.choose()
            cylinder = sector // (HEADS * SECTORS)
            seek_ms = self.seeks[abs(cylinder - self.cylinder)]
            self.cylinder = cylinder
            start_ms = sector % SECTORS * sector_ms
            wait_ms = (start_ms - (self.env.now + seek_ms)) % REVOLUTION_MS
            yield self.env.timeout(seek_ms + wait_ms + READ_SECTORS * sector_ms)
            self.response_ms += self.env.now - arrived_ms


def clients(env, disk, gap_ms, rng):
    """Poisson reads."""
    places = CYLINDERS * HEADS * SECTORS // READ_SECTORS
    for _ in range(REQUESTS):
        disk.submit(rng.randrange(places) * READ_SECTORS)
        yield env.timeout(rng.expovariate(1 / gap_ms))


def run(gap_ms, seeks, seed):
    """Requests a second, and their mean response in ms."""
    env = simpy.Environment()
    disk = Disk(env, seeks)
    env.process(clients(env, disk, gap_ms, random.Random(seed)))
    began = time.perf_counter()
    env.run()
    return REQUESTS / (time.perf_counter() - began), disk.response_ms / REQUESTS


def main():
    """Prints both."""
    ours = json.loads(Path(sys.argv[1]).read_text())
    seeks = seek_curve()
    runs = [run(ours["gap_ms"], seeks, seed) for seed in range(ROUNDS)]
    rate = statistics.median(rate for rate, _ in runs)
    response_ms = statistics.mean(response for _, response in runs)
    print(f"{'':8}{'requests/s':>14}{'least':>14}{'most':>14}{'mean response':>16}")
    for name, median, least, most, mean_ms in (
        ("weir", ours["requests_per_s"], ours["least"], ours["most"], ours["mean_response_ms"]),
        ("SimPy", rate, min(r for r, _ in runs), max(r for r, _ in runs), response_ms),
    ):
        print(f"{name:8}{median:14,.0f}{least:14,.0f}{most:14,.0f}{mean_ms:13.2f} ms")
    print(f"{ours['requests_per_s'] / rate:.0f} times SimPy's rate, at {ours['utilisation']:.0%} utilisation")


if __name__ == "__main__":
    main()
