"""Measures a directory: the cycle of a lock (exclusive create, write of 20 bytes, close,
unlink) and stat of a held one. Prints the medians in microseconds.

Called with DIRECTORY ROUNDS."""

import os
import statistics
import sys
import time


def timed(rounds, call):
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6


def take(name):
    descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    os.write(descriptor, b"x" * 20)
    os.close(descriptor)


directory, rounds = sys.argv[1], int(sys.argv[2])
lock = os.path.join(directory, "cycle.%d" % os.getpid())


def cycle():
    take(lock)
    os.unlink(lock)


timed(rounds // 10, cycle)
cycle_median = timed(rounds, cycle)
take(lock)
stat_median = timed(rounds * 4, lambda: os.stat(lock))
os.unlink(lock)
print(cycle_median, stat_median)
