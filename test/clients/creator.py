"""Creates one name after the other, in several threads at once, and keeps all of them.

Called with a directory that holds one directory for each thread, named 0, 1 and so on, and a log on the
local disk. To the log it appends, one line each, what it is about to do and what came of it:

    calling KIND PATH    made PATH [GONE]    failed ERRNO PATH

PATH is relative to the directory; GONE is a name that is not there any more. A thread ends when one of
its calls fails.
"""

import ctypes
import errno
import os
import sys
import threading

directory, log = sys.argv[1:]
record_fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
libc = ctypes.CDLL(None, use_errno=True)
RENAME_NOREPLACE = 1


def record(*words):
    os.write(record_fd, (" ".join(words) + "\n").encode())


def exclusive(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def move(source, target):
    if libc.renameat2(-100, source.encode(), -100, target.encode(), RENAME_NOREPLACE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def create(place, name, kind, do, gone=None):
    record("calling", kind, f"{place}/{name}")
    try:
        do()
    except OSError as error:
        record("failed", errno.errorcode[error.errno], f"{place}/{name}")
        raise
    record("made", f"{place}/{name}", *([f"{place}/{gone}"] if gone else []))


def work(thread):
    place = str(thread)

    def path(name):
        return os.path.join(directory, place, name)

    create(place, "base", "exclusive", lambda: exclusive(path("base")))
    number = thread  # so that the threads are at different kinds
    while True:
        number += 1
        name = str(number)
        kind = ("exclusive", "mkdir", "link", "symlink", "move")[number % 5]
        if kind == "exclusive":
            create(place, name, kind, lambda: exclusive(path(name)))
        elif kind == "mkdir":
            create(place, name, kind, lambda: os.mkdir(path(name)))
        elif kind == "link":
            create(place, name, kind, lambda: os.link(path("base"), path(name)))
        elif kind == "symlink":
            create(place, name, kind, lambda: os.symlink("base", path(name)))
        else:
            source = "source-" + name
            create(place, source, "exclusive", lambda: exclusive(path(source)))
            create(place, name, kind, lambda: move(path(source), path(name)), gone=source)


def until_failure(thread):
    try:
        work(thread)
    except OSError:
        pass


threads = [threading.Thread(target=until_failure, args=(int(name),)) for name in os.listdir(directory)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
