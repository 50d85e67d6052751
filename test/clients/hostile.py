"""A user who takes as much as possible of a mount, in one way.

Called with a directory of the user's own, which it makes if its parent lets it, with a way, and with what that needs:

    waits N         N threads wait for a lock of flock(2) that the user has
    waits N FILE    N threads wait for a lock of a file that another process has; "granted N" says how many of them got it, and released it
    signals N       N threads wait for a lock of flock(2) that the user has; each gets a signal again and again, and goes on waiting
    reads N FILE... N threads read files in .lockfs that make them wait; "read N" says how many reads returned
    ranges N M K    the user holds N locks of one byte each; M threads wait for one of them, and K threads lock and unlock others
    opens N FILE    N open descriptors of a file, each of them read
    names K         K threads create and remove names as long as possible
    fills           files, directories and links until there is no room
    streams N PATH  N streams of events on the socket of the page
    connects N HOST PORT
                    N connections to a port on which nothing is said

Says "begun: " and what the user has, once nothing more is to be had, and goes on until it is killed. With "again" as its last argument it
begins anew after each failed call, as faults are about; it has begun at once then.
"""

import encodings.idna  # before there are no descriptors left
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time

directory, way, *numbers = sys.argv[1:]
again = numbers[-1:] == ["again"]
if again:
    numbers.pop()
PAUSE = 0.2  # seconds after a call that failed
OFD_SETLK, OFD_SETLKW = 37, 38
CONTENT = 250_000
mutex = threading.Lock()
errors = {}
have = 0

limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
threading.stack_size(256 * 1024)


def count(number):
    global have
    with mutex:
        have += number
        return have


def failed(error):
    with mutex:
        name = errno.errorcode.get(error.errno, str(error))
        errors[name] = errors.get(name, 0) + 1


def begun(what):
    text = "".join(", %d %s" % (number, name) for name, number in sorted(errors.items()))
    os.write(1, b"begun: %s%s\n" % (what.encode(), text.encode()))


def path(name):
    return os.path.join(directory, name)


def opened(name):
    os.makedirs(directory, exist_ok=True)
    return os.open(path(name), os.O_RDWR | os.O_CREAT, 0o600)


def lock(fd, command, start, kind=fcntl.F_WRLCK):
    fcntl.fcntl(fd, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, 1, 0))


def forever(step):
    """Does a step in a thread, and again after a failure if that is asked for."""

    def run():
        while True:
            try:
                step()
            except OSError as error:
                failed(error)
                if not again:
                    return
                time.sleep(PAUSE)

    threading.Thread(target=run, daemon=True).start()


def attempts(step, number):
    """Does a step so many times; answers how often it succeeded."""
    done = 0
    for at in range(number):
        try:
            step(at)
            done += 1
        except OSError as error:
            failed(error)
    return done


def waits(number, file=None):
    number = int(number)
    if file is None:
        held = opened("held")
        fcntl.flock(held, fcntl.LOCK_EX)
    asked = threading.Semaphore(0)

    def step():
        fd = opened("held") if file is None else os.open(file, os.O_RDWR)
        try:
            asked.release()
            fcntl.flock(fd, fcntl.LOCK_EX)
        finally:
            os.close(fd)
        granted = count(1)
        if granted % 100 == 0 or granted == number:
            os.write(1, b"granted %d\n" % granted)
        if again:
            time.sleep(PAUSE)

    def once():
        try:
            step()
        except OSError as error:
            failed(error)

    for _ in range(number):
        if again:
            forever(step)
        else:
            threading.Thread(target=once, daemon=True).start()
    if not again:
        for _ in range(number):
            asked.acquire()
    begun("%d waits" % number)


def signals(number):
    signal.signal(signal.SIGUSR1, lambda *_: None)
    held = opened("held")
    fcntl.flock(held, fcntl.LOCK_EX)
    asked = threading.Semaphore(0)

    def wait():
        fd = opened("held")
        asked.release()
        fcntl.flock(fd, fcntl.LOCK_EX)

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(int(number))]
    for thread in threads:
        thread.start()
    for _ in threads:
        asked.acquire()
    begun("%s waits" % number)
    while True:
        for thread in threads:
            signal.pthread_kill(thread.ident, signal.SIGUSR1)
        time.sleep(0.001)


def reads(number, *files):
    number = int(number)
    opened_all = threading.Semaphore(0)

    def step(name):
        text = b""
        try:
            with open(name, "rb", buffering=0) as file:
                opened_all.release()
                text = file.read(1000)
                if not text:
                    raise OSError(errno.ENODATA, name)
        except OSError as error:
            failed(error)
            os.write(1, b"failed: %s\n" % str(error).encode())
        done = count(1)
        if done == 1:
            os.write(1, b"the first read: %s\n" % text)
        if done % 100 == 0 or done == number:
            os.write(1, b"read %d\n" % done)

    for at in range(number):
        threading.Thread(target=step, args=(files[at % len(files)],), daemon=True).start()
    for _ in range(number):
        opened_all.acquire()
    begun("%d reads" % number)


def ranges(held, waiting, churning):
    held, waiting, churning = int(held), int(waiting), int(churning)
    kept = opened("ranges")
    has = attempts(lambda at: lock(kept, OFD_SETLK, 2 * at), held)
    asked = threading.Semaphore(0)

    def wait():
        fd = opened("ranges")
        try:
            asked.release()
            lock(fd, OFD_SETLKW, 0)
            if again:
                time.sleep(PAUSE)
        finally:
            os.close(fd)

    def churn(own):
        def step():
            fd = opened("ranges")
            try:
                while True:
                    lock(fd, OFD_SETLK, own)
                    lock(fd, OFD_SETLK, own, fcntl.F_UNLCK)
            finally:
                os.close(fd)

        return step

    for _ in range(waiting):
        forever(wait)
    if not again:
        for _ in range(waiting):
            asked.acquire()
    for number in range(churning):
        forever(churn(2 * (held + number)))
    begun("%d locks, %d waits" % (has, waiting))


kept = []  # open files, until the end of the process


def opens(number, name):
    def step(_):
        file = open(name, "rb", buffering=0)
        kept.append(file)
        file.read(65536)

    if again:

        def all_of_them():
            while kept:
                kept.pop().close()
            for at in range(int(number)):
                step(at)

        forever(all_of_them)
    has = 0 if again else attempts(step, int(number))
    begun("%d descriptors" % has)


def names(threads):
    def churn(own):
        prefix = "%d-" % own

        def step():
            os.makedirs(directory, exist_ok=True)
            at = 0
            while True:
                name = path((prefix + str(at)).ljust(250, "x") + ".lock")
                os.mkdir(name)
                os.rmdir(name)
                at = (at + 1) % 1000
                count(1)

        return step

    for own in range(int(threads)):
        forever(churn(own))
    begun("%s threads" % threads)
    while not again:  # how many names there were so far
        time.sleep(0.5)
        os.write(1, b"names %d\n" % count(0))


def fills():
    os.makedirs(directory, exist_ok=True)
    has = tried = 0

    def until_full(make):
        nonlocal has, tried
        while True:
            tried += 1
            try:
                make(path("file%d" % tried))
                has += 1
            except OSError as error:
                failed(error)
                return

    def write(size):
        def make(name):
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(fd, b"x" * size)
            finally:
                os.close(fd)

        return make

    for make in (write(CONTENT), write(20_000), write(1), os.mkdir):
        until_full(make)
    begun("%d names" % has)


def streams(number, at):
    kept, codes = [], {}
    for _ in range(int(number)):
        s = socket.socket(socket.AF_UNIX)
        s.connect(at)
        s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: lockfs\r\n\r\n")
        code = s.recv(4096).split()[1].decode()
        codes[code] = codes.get(code, 0) + 1
        kept.append(s)
    begun(", ".join("%d answers %s" % (codes[code], code) for code in sorted(codes)))
    pause()


def connects(number, host, port):
    kept = [socket.create_connection((host, int(port))) for _ in range(int(number))]
    begun("%d connections" % len(kept))
    pause()


def pause():
    while True:
        time.sleep(3600)


while True:
    try:
        globals()[way](*numbers)
        pause()
    except OSError as error:
        failed(error)
        if not again:
            raise
        time.sleep(PAUSE)
