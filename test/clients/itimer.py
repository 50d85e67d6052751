"""Takes and drops a lock again and again while a timer interrupts this process a thousand
times a second. Calls the C library directly, since Python's own calls hide EINTR. Prints the
first call that fails, or "signals: N".

Called with DIRECTORY ROUNDS."""

import ctypes
import os
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)
signals = 0


def interrupted(*_):
    global signals
    signals += 1


def call(function, *args):
    result = function(*args)
    if result < 0:
        sys.exit("%s: %s" % (function.__name__, os.strerror(ctypes.get_errno())))
    return result


lock = os.fsencode(os.path.join(sys.argv[1], "lock"))
signal.signal(signal.SIGALRM, interrupted)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for _ in range(int(sys.argv[2])):
    descriptor = call(libc.open, lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    call(libc.write, descriptor, b"held\n", 5)
    call(libc.close, descriptor)
    call(libc.unlink, lock)
    call(libc.mkdir, lock, 0o755)
    call(libc.rmdir, lock)
signal.setitimer(signal.ITIMER_REAL, 0)
print("signals:", signals)
