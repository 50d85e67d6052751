"""Threads that wait for a flock(2) lock of one file.

Called with the file and how many threads there are to be. Says "waits" once all have asked, and "granted N" for each 100th that got
the lock; each releases it at once.
"""

import fcntl
import os
import resource
import sys
import threading

path, count = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
threading.stack_size(64 * 1024)
mutex = threading.Lock()
asked = granted = 0


def wait():
    global asked, granted
    fd = os.open(path, os.O_RDWR)
    with mutex:
        asked += 1
        if asked == count:
            os.write(1, b"waits\n")
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.close(fd)
    with mutex:
        granted += 1
        if granted % 100 == 0 or granted == count:
            os.write(1, b"granted %d\n" % granted)


for _ in range(count):
    threading.Thread(target=wait).start()
