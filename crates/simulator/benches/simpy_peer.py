#!/usr/bin/env python3
"""Requests per second of weir's simulator under each policy, and of SimPy at the load of policy scan.

python crates/simulator/benches/simpy_peer.py BENCH_SIMULATOR

BENCH_SIMULATOR is the program built from crates/simulator/examples. All take turns, since the speed of a
machine that others share changes within a minute: ratios are of one turn. Without SimPy only weir is
measured.

The model here is written independently: one zone of 99 sectors, 21 heads, the seek curve of Lee and Katz
through minimum, average and maximum, the platter's position from the time, SCAN over cylinders; no skew, no
buffer. Its mean response is printed beside weir's, so that it can be seen that both serve much the same disk.
"""

import json
import random
import statistics
import subprocess
import sys
import time
from math import sqrt

try:
    import simpy
except ImportError:
    simpy = None

CYLINDERS, HEADS, SECTORS = 2627, 21, 99
SEEK_MIN_MS, SEEK_AVG_MS, SEEK_MAX_MS = 1.7, 11.0, 22.5
REVOLUTION_MS = 11.1
READ_SECTORS = 8
REQUESTS = 100_000
# Of one of five runs of weir, which `bench_simulator` makes of each policy.
REQUESTS_OF_WEIR = 400_000
TURNS = 15
POLICIES = ("fcfs", "look", "satf", "scan")


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


def weir(program, policy):
    """What `bench_simulator` prints for one policy."""
    command = [program, "seagate-elite3", policy, str(REQUESTS_OF_WEIR)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main():
    """Prints rates, then ratios."""
    program, seeks, turns = sys.argv[1], seek_curve(), []
    for seed in range(TURNS):
        found = {policy: weir(program, policy) for policy in POLICIES[:: 1 if seed % 2 else -1]}
        turn = {
            f"weir {policy}": (found[policy]["requests_per_s"], found[policy]["mean_response_ms"])
            for policy in POLICIES
        }
        if simpy is not None:
            turn["SimPy scan"] = run(found["scan"]["gap_ms"], seeks, seed)
        turns.append(turn)
    print(f"{'':12}{'requests/s':>14}{'least':>14}{'most':>14}{'mean response':>16}")
    for name in turns[0]:
        rates = sorted(turn[name][0] for turn in turns)
        mean_ms = statistics.mean(turn[name][1] for turn in turns)
        middle = statistics.median(rates)
        print(f"{name:12}{middle:14,.0f}{rates[0]:14,.0f}{rates[-1]:14,.0f}{mean_ms:13.2f} ms")
    print(f"of one turn, medians of {TURNS}, at {found['scan']['utilisation']:.0%} utilisation:")
    for name, peer in (("weir satf", "weir scan"), ("weir scan", "SimPy scan")):
        if peer in turns[0]:
            ratios = sorted(turn[name][0] / turn[peer][0] for turn in turns)
            middle = statistics.median(ratios)
            print(f"{name} / {peer}: {middle:.3g} ({ratios[0]:.3g} to {ratios[-1]:.3g})")


if __name__ == "__main__":
    main()
