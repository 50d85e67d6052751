"""Uses a mount in every way at once until SIGTERM, and then says in JSON how often, the longest that a call took, in seconds, and
what failed. With "killed", a call that changes something may fail with EIO, and then may have been done or not; others may, and are done again,
as the kernel gives up a request that it is just handing to a process when that is killed; a reader of events
begins anew.

usage: unnoticed.py DIR [killed]"""

import errno
import fcntl
import json
import os
import signal
import sys
import threading
import time
import traceback

directory = sys.argv[1]
killed = sys.argv[2:] == ["killed"]
over = threading.Event()
longest, counts, failures, unknown = {}, {}, [], {}
UNKNOWN = object()
STEADY = ["fstat", "pread", "flock", "fcntl"]  # do the same, done once more


def path(name):
    return os.path.join(directory, name)


def sure(call, *args):
    """does again what changes nothing, if the kernel gave it to a process that was just being killed, and told of EIO"""
    try:
        return call(*args)
    except OSError as failure:
        if not killed or failure.errno != errno.EIO:
            raise
        unknown["again"] = unknown.get("again", 0) + 1
        return None if call is os.close else call(*args)


def timed(name, call, *args):
    began = time.monotonic()
    result = sure(call, *args) if name in STEADY else call(*args)
    longest[name] = max(longest.get(name, 0), time.monotonic() - began)
    counts[name] = counts.get(name, 0) + 1
    return result


def change(name, call, *args):
    """answers UNKNOWN if nobody knows whether it was done"""
    try:
        return timed(name, call, *args)
    except OSError as failure:
        if not killed or failure.errno != errno.EIO:
            raise
        unknown[name] = unknown.get(name, 0) + 1
        return UNKNOWN


def hold(fd):
    """writes through a descriptor whose file it has locked"""
    lines = 0
    while not over.is_set():
        if change("write", os.write, fd, b"%06d\n" % lines) is UNKNOWN:
            if sure(os.fstat, fd).st_size == 7 * lines:
                continue
        lines += 1
        assert timed("fstat", os.fstat, fd).st_size == 7 * lines, "lines were lost"
        assert timed("pread", os.pread, fd, 7, 7 * (lines - 1)) == b"%06d\n" % (lines - 1)


def keep_orphan(fd):
    """uses a file that has no name any more"""
    while not over.is_set():
        change("orphan", os.pwrite, fd, b"orphan", 0)
        assert sure(os.pread, fd, 6, 0) == b"orphan"


def take():
    """takes a lock that is a file"""
    while not over.is_set():
        fd = change("create", os.open, path("exclusive"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        if fd is UNKNOWN:
            end = time.monotonic() + 30
            while os.path.exists(path("exclusive")):
                assert time.monotonic() < end, "a creation that failed was not taken back"
            continue
        change("write", os.write, fd, b"%d" % os.getpid())
        sure(os.close, fd)
        while change("unlink", os.unlink, path("exclusive")) is UNKNOWN and os.path.exists(path("exclusive")):
            pass


inside = []


def contend():
    """waits for a flock that others of the like have in turn"""
    while not over.is_set():
        fd = sure(os.open, path("contended"), os.O_RDWR)
        timed("flock", fcntl.flock, fd, fcntl.LOCK_EX)
        inside.append(1)
        assert len(inside) == 1, "two have it"
        sure(os.listdir, directory)
        inside.pop()
        sure(os.close, fd)


def wait(fd):
    """waits for a flock until the end"""
    sure(fcntl.flock, fd, fcntl.LOCK_EX)
    assert over.is_set(), "it got a lock that another had"


def record(fd):
    """has a lock of a process, and waits for others of it"""
    while not over.is_set():
        timed("fcntl", fcntl.lockf, fd, fcntl.LOCK_EX, 10, 0)
        sure(fcntl.lockf, fd, fcntl.LOCK_UN, 10, 0)


def follow(fd):
    """reads events, which never end"""
    while not over.is_set():
        read = change("events", os.read, fd, 65536)
        if read is UNKNOWN:
            os.close(fd)
            fd = os.open(path(".lockfs/events"), os.O_RDONLY)
        else:
            assert read, "the events end"


def attempt(call, *args):
    try:
        call(*args)
    except BaseException as failure:
        at = traceback.extract_tb(failure.__traceback__)[-1].lineno
        failures.append("%s, line %d: %r" % (call.__name__, at, failure))


held = os.open(path("held"), os.O_CREAT | os.O_RDWR | os.O_APPEND)
fcntl.flock(held, fcntl.LOCK_EX)
orphan = os.open(path("orphan"), os.O_CREAT | os.O_RDWR)
os.unlink(path("orphan"))
region = os.open(path("record"), os.O_CREAT | os.O_RDWR)
fcntl.lockf(region, fcntl.LOCK_EX, 5, 100)
os.close(os.open(path("contended"), os.O_CREAT | os.O_RDWR))
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
print(json.dumps({"longest": longest, "counts": counts, "unknown": unknown, "failures": failures}), flush=True)
os._exit(bool(failures))
