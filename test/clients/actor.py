"""Calls of flock(2) and fcntl(2) for a process that is told step by step what to do. Each prints what the
call answered: "ok", the name of an error, or what F_GETLK says."""

import ctypes
import errno
import fcntl
import os
import signal
import struct
import threading
import time

# Some numbers have two names.
NAMES = errno.errorcode | {errno.EAGAIN: "EAGAIN", errno.EDEADLK: "EDEADLK"}
libc = ctypes.CDLL(None, use_errno=True)
files = {}

FLOCK = {"sh": fcntl.LOCK_SH, "ex": fcntl.LOCK_EX, "un": fcntl.LOCK_UN}
RECORD = {"r": fcntl.F_RDLCK, "w": fcntl.F_WRLCK, "u": fcntl.F_UNLCK}
# Of a process, and of an open file description (F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW).
GET, SET, WAIT = (fcntl.F_GETLK, 36), (fcntl.F_SETLK, 37), (fcntl.F_SETLKW, 38)
STRUCT = "hhqqi4x"  # struct flock


def say(call, *args):
    try:
        answer = call(*args)
    except OSError as error:
        answer = NAMES.get(error.errno, error.errno)
    print("ok" if answer is None else answer, flush=True)


def opened(file, path, flags=os.O_RDWR | os.O_CREAT):
    """Opens a file under a name by which it is called here."""
    files[file] = os.open(path, flags, 0o666)


def close(file):
    say(os.close, files.pop(file))


def flock(file, kind, wait=False):
    say(fcntl.flock, files[file], FLOCK[kind] | (0 if wait else fcntl.LOCK_NB))


def request(kind, start, length):
    return struct.pack(STRUCT, RECORD[kind], os.SEEK_SET, start, length, 0)


def lock(file, kind, start=0, length=0, wait=False, ofd=False):
    say(set_lock, files[file], (WAIT if wait else SET)[ofd], kind, start, length)


def set_lock(fd, command, kind, start, length):
    fcntl.fcntl(fd, command, request(kind, start, length))


def test(file, kind, start=0, length=0, ofd=False):
    """What is in the way of a lock: its type, first byte, length and pid."""
    say(get_lock, files[file], GET[ofd], kind, start, length)


def get_lock(fd, command, kind, start, length):
    kind, _, start, length, pid = struct.unpack(STRUCT, fcntl.fcntl(fd, command, request(kind, start, length)))
    if kind == fcntl.F_UNLCK:
        return "free"
    return "%s %d+%d by %d" % ("r" if kind == fcntl.F_RDLCK else "w", start, length, pid)


def signals(restart, handler=lambda *_: None):
    """Takes SIGALRM, with SA_RESTART or without."""
    signal.signal(signal.SIGALRM, handler)
    signal.siginterrupt(signal.SIGALRM, not restart)


def raw_flock(file, kind):
    """flock(2) that waits, once: Python's own does it again after a signal."""
    if libc.flock(files[file], FLOCK[kind]) != 0:
        raise OSError(ctypes.get_errno(), "flock")


def raw_lock(file, kind, start=0, length=0, ofd=False):
    """fcntl(2) that waits, once."""
    argument = ctypes.create_string_buffer(request(kind, start, length))
    if libc.fcntl(files[file], WAIT[ofd], argument) != 0:
        raise OSError(ctypes.get_errno(), "fcntl")


def forked(steps):
    """Does steps in a child, which ends then."""
    child = os.fork()
    if child == 0:
        try:
            exec(steps)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def threaded(steps):
    """Does steps in another thread."""
    threading.Thread(target=exec, args=(steps, globals()), daemon=True).start()


def until_lost(file):
    """Reads through a descriptor until that fails."""
    while True:
        os.pread(files[file], 1, 0)
        time.sleep(0.02)


def answers(file, last):
    """Reads through a descriptor until a certain error. What was answered, without repetitions."""
    seen = []
    while last not in seen:
        try:
            os.pread(files[file], 1, 0)
            answer = "ok"
        except OSError as error:
            answer = NAMES[error.errno]
        if [answer] != seen[-1:]:
            seen.append(answer)
    return " ".join(seen)


def close_and_flock(path, rounds):
    """Takes a lock as soon as another descriptor that had it is closed, without waiting."""
    before = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(before, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for _ in range(rounds):
        now = os.open(path, os.O_RDWR)
        os.close(before)
        fcntl.flock(now, fcntl.LOCK_EX | fcntl.LOCK_NB)
        before = now
    os.close(before)


def flock_under_signals(file, rounds):
    """Takes a lock again and again while a timer interrupts. Only EINTR is hidden by Python's call."""
    signals(restart=False)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    for _ in range(rounds):
        fcntl.flock(files[file], fcntl.LOCK_EX)
        time.sleep(0.005)
        fcntl.flock(files[file], fcntl.LOCK_UN)
    signal.setitimer(signal.ITIMER_REAL, 0)


def reopened(path, rounds):
    """Locks a file as soon as a descriptor is closed that had locked it in two ways: the kernel may know both by the same
    number. Says how often the new lock was gone."""
    lost = 0
    for _ in range(rounds):
        before = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(before, fcntl.LOCK_EX)
        set_lock(before, SET[True], "w", 0, 0)
        os.close(before)
        now, other = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
        set_lock(now, WAIT[True], "w", 0, 0)
        fcntl.flock(other, fcntl.LOCK_EX)  # until the first one is released
        lost += any(get_lock(other, GET[True], "w", 0, 0) == "free" for _ in range(30))
        os.close(now)
        os.close(other)
    return lost
