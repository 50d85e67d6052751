"""Takes one lock after the other, of several kinds, and gives some of them back.

Called with the directory, a log on the local disk, and a name of its own. To the
log it appends what it is about to do and what it was told, one line each:

    making KIND NAME    made NAME    written NAME    removing NAME    removed NAME

It ends at the first error. What it writes to a lock, or links to, is "held by NAME".
"""

import os
import sys

directory, log, me = sys.argv[1:]
record_fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def record(*words):
    os.write(record_fd, (" ".join(words) + "\n").encode())


number = 0
while True:
    number += 1
    kind = ("file", "symlink", "directory")[number % 3]
    name = f"{me}-{number}"
    path = os.path.join(directory, name)
    record("making", kind, name)
    if kind == "symlink":
        os.symlink("held by " + name, path)
        record("made", name)
    elif kind == "directory":
        os.mkdir(path)
        record("made", name)
    else:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        record("made", name)
        os.write(fd, b"held by " + name.encode())
        os.close(fd)
    record("written", name)
    if number % 4 == 0:
        record("removing", name)
        (os.rmdir if kind == "directory" else os.unlink)(path)
        record("removed", name)
