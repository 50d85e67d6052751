"""Polls a held lock with stat, as a waiting program does. Prints how many polls there were, and
the median and the 99th percentile of their times in microseconds.

Called with FILE EVERY_SECONDS FOR_SECONDS."""

import os
import statistics
import sys
import time

lock, every, end = sys.argv[1], float(sys.argv[2]), time.monotonic() + float(sys.argv[3])
took = []
while time.monotonic() < end:
    began = time.perf_counter()
    os.stat(lock)
    took.append(time.perf_counter() - began)
    time.sleep(every)
quantiles = statistics.quantiles(took, n=100)
print(len(took), quantiles[49] * 1e6, quantiles[98] * 1e6)
