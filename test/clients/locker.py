"""Locks of flock(2) and of fcntl(2), which wait. The name of the directory tells the kind: "flock", "lockf"
(of the process), "ofd" (of the open file description), or "none" to take no lock at all. Called like the
shell clients, see worker.sh; the lock is on the file "lock".

Now and then a child takes the lock and is killed while it has it, which the log calls "crash".

To the file times.NAME of the witness it appends a line each time it got the lock: when it asked and when it
had it, in nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share."""

import fcntl
import os
import signal
import struct
import sys
import time

directory, witness, me, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
kind = os.path.basename(directory)
OFD_SETLKW = 38
CRASH_EVERY = 5


def nap():
    time.sleep(0.01)


def say(*words):
    print(*words, flush=True)


def record(name, line):
    fd = os.open(os.path.join(witness, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def set_lock(fd, exclusive):
    """Takes the lock, or gives it back."""
    if kind == "flock":
        fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_UN)
    elif kind == "lockf":
        fcntl.lockf(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_UN)
    elif kind == "ofd":
        how = fcntl.F_WRLCK if exclusive else fcntl.F_UNLCK
        fcntl.fcntl(fd, OFD_SETLKW, struct.pack("hhqqi4x", how, os.SEEK_SET, 0, 0, 0))


def acquire():
    """A descriptor with the lock, or None after an error."""
    fd = None
    try:
        fd = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT, 0o666)
        asked = time.monotonic_ns()
        set_lock(fd, True)
        record("times." + me, "%d %d" % (asked, time.monotonic_ns()))
        return fd
    except OSError as error:
        say("error: acquire:", error)
        if fd is not None:
            close(fd)
        return None


def close(fd):
    try:
        os.close(fd)
    except OSError as error:
        say("error: close:", error)


def critical(end):
    record("log", "enter " + me)
    path = os.path.join(witness, "count")
    with open(path) as file:
        count = int(file.read() or 0)
    nap()
    with open(path, "w") as file:
        file.write(f"{count + 1}\n")
    record("log", end + " " + me)


def release(fd, unlock):
    if unlock:
        try:
            set_lock(fd, False)
        except OSError as error:
            say("error: release:", error)
    close(fd)


def crash():
    """Has the lock in a child that is killed. Answers whether it had it."""
    child = os.fork()
    if child == 0:
        if acquire() is None:
            os._exit(1)
        critical("crash")
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


done = 0
while done < rounds or not os.path.exists(os.path.join(witness, "stop")):
    if done % CRASH_EVERY == CRASH_EVERY - 1 and crash():
        done += 1
        continue
    fd = acquire()
    if fd is None:
        nap()
        continue
    critical("leave")
    release(fd, done % 2 == 0)
    done += 1
say("finished after", done, "rounds")
