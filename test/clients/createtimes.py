"""Creates and removes a name again and again, and says how long each creation took, in nanoseconds, a line each.

Called with a directory and how often.
"""

import os
import sys
import time

os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    began = time.monotonic_ns()
    os.close(os.open("timed.lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    print(time.monotonic_ns() - began)
    os.unlink("timed.lock")
    time.sleep(0.01)
