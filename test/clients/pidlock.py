"""Programs that take a kernel lock on a file and write a pid into it, for a process that is told step by step what to do.
Each is a child, called by a name, which has the functions of actor.py."""

import os
import subprocess

from actor import FLOCK, SET, fcntl, files, flock, lock, opened, raw_flock, raw_lock, set_lock

programs = {}

WRITE = """
[ "$3" = 1 ] && pid=$$ || pid=$PPID
echo $pid > "$1"
[ -z "$2" ] || printf '{"holder":"me","pid":%d,"hostname":"%s","started_at":"%s"}' $pid "$(hostname)" "$(date -u +%FT%TZ)" > "$2"
"""


def take(kind, wait):
    """Takes the lock on files["f"]: "flock", "fcntl" or "ofd". Without waiting, answers whether it is had."""
    try:
        if kind == "flock" and wait:
            raw_flock("f", "ex")
        elif kind == "flock":
            fcntl.flock(files["f"], FLOCK["ex"] | fcntl.LOCK_NB)
        elif wait:
            raw_lock("f", "w", ofd=kind == "ofd")
        else:
            set_lock(files["f"], SET[kind == "ofd"], "w", 0, 0)
        return True
    except BlockingIOError:
        return False


def release(kind):
    if kind == "flock":
        flock("f", "un")
    else:
        lock("f", "u", ofd=kind == "ofd")


def there(path):
    """Whether the open file is still what the path leads to."""
    try:
        return os.fstat(files["f"]).st_ino == os.stat(path).st_ino
    except FileNotFoundError:
        return False


def run(kind, path, says, hears, mark, helper, checks):
    """Takes the lock, writes, and says that it is in, as itself or by a helper that ends at once. With checks, it takes the
    lock on what the path leads to then. The mark is a lock of that process which is removed when it ends."""
    while True:
        opened("f", path)
        take(kind, True)
        if not checks or there(path):
            break
        os.close(files["f"])
    subprocess.run(["sh", "-c", WRITE, "sh", path, mark or "", str(int(helper))], check=True)
    os.write(says, b"in ")
    for order in iter(lambda: os.read(hears, 1), b""):
        if order == b"u":
            release(kind)
            os.write(says, b"out ")
        else:
            os.write(says, b"kept " if there(path) else b"lost ")


def begin(name, kind, path, mark=None, helper=False, checks=False):
    """Starts a program that waits for the lock."""
    heard, says = os.pipe()
    hears, orders = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(orders)
            for other in programs.values():
                os.close(other[2])
            run(kind, path, says, hears, mark, helper, checks)
        except BaseException as error:
            os.write(says, b"error: %s " % str(error).encode())
        finally:
            os._exit(0)
    os.close(says)
    os.close(hears)
    programs[name] = child, heard, orders


def hear(name):
    """Prints what the program says next: that it is in, at first."""
    print(os.read(programs[name][1], 1000).decode().strip())


def tell(name, order):
    """Tells it to give the lock back and go on ("u"), or to say whether what it locked is there still ("k")."""
    os.write(programs[name][2], order.encode())
    hear(name)


def end(name, signal):
    """Ends it, and with that its lock."""
    child, heard, orders = programs.pop(name)
    os.kill(child, signal)
    os.waitpid(child, 0)
    os.close(heard)
    os.close(orders)


def attempt(kind, path):
    """What a program is told that comes now and does not wait."""
    opened("f", path)
    print("in" if take(kind, False) else "taken")
    os.close(files.pop("f"))
