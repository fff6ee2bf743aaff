"""libCacheSim's caches on a file of requests, beside the rates of weir's bench on the same requests.

Usage: bench_libcachesim.py ZIPF.oracleGeneral.bin OURS.json
"""

import json
import statistics
import sys
import time

import libcachesim as lcs

#: As crates/cache/examples/bench_caches.rs has it.
CAPACITY = 100_000
PASSES = 3
CACHES = {"lru": lcs.LRU, "arc": lcs.ARC, "sieve": lcs.Sieve, "s3-fifo": lcs.S3FIFO}


def reader(path):
    """The requests; every object has the size 1 in the file."""
    parameters = lcs.ReaderInitParam(ignore_obj_size=True)
    kind = lcs.TraceType.ORACLE_GENERAL_TRACE
    return lcs.TraceReader(trace=path, trace_type=kind, reader_init_params=parameters)


def measure(path, make, requests):
    """Requests a second (median), and the miss ratio."""
    rates = []
    for _ in range(PASSES):
        source, cache = reader(path), make(cache_size=CAPACITY)
        begin = time.perf_counter()
        miss_ratio, _ = cache.process_trace(source)
        rates.append(requests / (time.perf_counter() - begin))
    return statistics.median(rates), miss_ratio


def main(path, ours):
    """Prints a line for each policy."""
    with open(ours) as file:
        ours = json.load(file)
    requests = round(ours["lru"]["misses"] / ours["lru"]["miss_ratio"])
    print(f"{'':8} {'weir/s':>12} {'libCacheSim/s':>14} {'ratio':>6}  miss ratios")
    for name, make in CACHES.items():
        rate, miss_ratio = measure(path, make, requests)
        own = ours[name]
        print(
            f"{name:8} {own['requests_per_s']:12,.0f} {rate:14,.0f} {own['requests_per_s'] / rate:6.2f}"
            f"  {own['miss_ratio']:.8f} {miss_ratio:.8f}"
        )
    print("libCacheSim's rates include its reading of the file; its S3-FIFO differs from the paper's.")


if __name__ == "__main__":
    main(*sys.argv[1:])
