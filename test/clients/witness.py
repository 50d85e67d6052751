"""A user who does ordinary work on a mount: takes and releases locks in each of the usual ways, again and again.

Called with a directory in which everybody may create names. At SIGUSR1 it forgets what it has seen, at SIGUSR2 it prints that: "seen " and a
line of JSON. Calls may fail; it goes on with other names then.
"""

import errno
import fcntl
import json
import os
import signal
import sys
import time

own = os.path.join(sys.argv[1], "witness-%d-%s-%d" % (os.getuid(), os.uname().nodename, os.getpid()))
PAUSE = 0.01  # seconds


def forget():
    global calls, creations, failures, longest, slowest
    calls, creations, failures, longest, slowest = 0, [], {}, 0, ""


def tell():
    median = sorted(creations)[len(creations) // 2] if creations else 0
    seen = {"calls": calls, "creation": median, "longest": longest, "slowest": slowest, "failures": failures}
    os.write(1, b"seen %s\n" % json.dumps(seen).encode())


def timed(what, call, *arguments):
    global calls, longest, slowest
    began = time.monotonic_ns()
    try:
        return call(*arguments)
    except OSError as error:
        name = "%s: %s" % (what, errno.errorcode.get(error.errno, error.errno))
        failures[name] = failures.get(name, 0) + 1
        raise
    finally:
        took = time.monotonic_ns() - began
        calls += 1
        if took > longest:
            longest, slowest = took, what
        if what in ("create", "mkdir"):
            creations.append(took)


def work(number):
    name = os.path.join(own, "%d.lock" % number)
    timed("mkdir", os.mkdir, name)
    timed("rmdir", os.rmdir, name)
    fd = timed("create", os.open, name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        timed("write", os.write, fd, b"%d\n" % os.getpid())
        timed("flock", fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        timed("unlock", fcntl.flock, fd, fcntl.LOCK_UN)
        timed("fcntl", fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        timed("stat", os.stat, name)
    finally:
        timed("close", os.close, fd)
    timed("unlink", os.unlink, name)


forget()
signal.signal(signal.SIGUSR1, lambda *_: forget())
signal.signal(signal.SIGUSR2, lambda *_: tell())
print("works", flush=True)
number = 0
while True:
    number += 1
    try:
        if not os.path.isdir(own):
            os.makedirs(own)
        work(number)
        time.sleep(PAUSE)
    except OSError:
        time.sleep(20 * PAUSE)
