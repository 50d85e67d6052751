"""Uses a mount in every way at once until SIGTERM, and then says in JSON how often, the longest that a call took, in seconds, and
what failed.

usage: unnoticed.py DIR"""

import fcntl
import json
import os
import signal
import sys
import threading
import time

directory = sys.argv[1]
over = threading.Event()
longest, counts, failures = {}, {}, []


def path(name):
    return os.path.join(directory, name)


def timed(name, call, *args):
    began = time.monotonic()
    result = call(*args)
    longest[name] = max(longest.get(name, 0), time.monotonic() - began)
    counts[name] = counts.get(name, 0) + 1
    return result


def hold(fd):
    """writes through a descriptor whose file it has locked"""
    lines = 0
    while not over.is_set():
        timed("write", os.write, fd, b"%06d\n" % lines)
        lines += 1
        assert timed("fstat", os.fstat, fd).st_size == 7 * lines, "lines were lost"
        assert timed("pread", os.pread, fd, 7, 7 * (lines - 1)) == b"%06d\n" % (lines - 1)


def keep_orphan(fd):
    """uses a file that has no name any more"""
    while not over.is_set():
        timed("orphan", os.pwrite, fd, b"orphan", 0)
        assert os.pread(fd, 6, 0) == b"orphan"


def take():
    """takes a lock that is a file"""
    while not over.is_set():
        fd = timed("create", os.open, path("exclusive"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.write(fd, b"%d" % os.getpid())
        os.close(fd)
        timed("unlink", os.unlink, path("exclusive"))


inside = []


def contend():
    """waits for a flock that others of the like have in turn"""
    while not over.is_set():
        fd = os.open(path("contended"), os.O_CREAT | os.O_RDWR)
        timed("flock", fcntl.flock, fd, fcntl.LOCK_EX)
        inside.append(1)
        assert len(inside) == 1, "two have it"
        os.listdir(directory)
        inside.pop()
        os.close(fd)


def wait(fd):
    """waits for a flock until the end"""
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert over.is_set(), "it got a lock that another had"


def record(fd):
    """has a lock of a process, and waits for others of it"""
    while not over.is_set():
        timed("fcntl", fcntl.lockf, fd, fcntl.LOCK_EX, 10, 0)
        fcntl.lockf(fd, fcntl.LOCK_UN, 10, 0)


def follow(fd):
    """reads events, which never end"""
    while not over.is_set():
        assert timed("events", os.read, fd, 65536), "the events end"


def attempt(call, *args):
    try:
        call(*args)
    except BaseException as failure:
        failures.append("%s: %r" % (call.__name__, failure))


held = os.open(path("held"), os.O_CREAT | os.O_RDWR | os.O_APPEND)
fcntl.flock(held, fcntl.LOCK_EX)
orphan = os.open(path("orphan"), os.O_CREAT | os.O_RDWR)
os.unlink(path("orphan"))
region = os.open(path("record"), os.O_CREAT | os.O_RDWR)
fcntl.lockf(region, fcntl.LOCK_EX, 5, 100)
waiter = threading.Thread(target=attempt, args=(wait, os.open(path("held"), os.O_RDWR)))
threads = [
    threading.Thread(target=attempt, args=work)
    for work in [(hold, held), (keep_orphan, orphan), (take,), (contend,), (contend,), (record, region)]
]
signal.signal(signal.SIGTERM, lambda *_: over.set())
for thread in [waiter, *threads]:
    thread.start()
if os.path.exists(path(".lockfs")):
    events = os.open(path(".lockfs/events"), os.O_RDONLY)
    threading.Thread(target=attempt, args=(follow, events), daemon=True).start()
print("working", flush=True)
over.wait()
for thread in threads:
    thread.join()
os.close(held)
waiter.join()
print(json.dumps({"longest": longest, "counts": counts, "failures": failures}), flush=True)
os._exit(bool(failures))
