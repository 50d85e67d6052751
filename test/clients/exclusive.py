"""Python's os.open with O_CREAT|O_EXCL. Called like the shell clients, see worker.sh."""

import os
import sys
import time

directory, witness, me, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
lock = os.path.join(directory, "lock")


def nap():
    time.sleep(0.01)


def say(*words):
    print(*words, flush=True)


def record(line):
    fd = os.open(os.path.join(witness, "log"), os.O_WRONLY | os.O_APPEND)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def acquire():
    try:
        fd = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    except OSError as error:
        say("error: acquire:", error)
        return False
    # Once the file is there it is ours, even if nothing can be written to it.
    try:
        os.write(fd, me.encode() + b"\n")
    except OSError as error:
        say("error: acquire:", error)
    try:
        os.close(fd)
    except OSError as error:
        say("error: acquire:", error)
    return True


def critical():
    record("enter " + me)
    path = os.path.join(witness, "count")
    with open(path) as file:
        count = int(file.read() or 0)
    nap()
    with open(path, "w") as file:
        file.write(f"{count + 1}\n")
    record("leave " + me)


def look():
    """The lock's inode number, or None if there is no lock; waits until that can be told."""
    while True:
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            say("error: look:", error)
            nap()
            continue
        try:
            return os.lstat("lock", dir_fd=fd).st_ino
        except FileNotFoundError:
            return None
        except OSError as error:
            say("error: look:", error)
            nap()
        finally:
            os.close(fd)


def release():
    mine = look()
    if mine is None:
        record("lost " + me)
        return
    while True:
        try:
            return os.unlink(lock)
        except OSError as error:
            say("error: release:", error)
        nap()
        # It may have been removed all the same, and the one there now is somebody else's.
        if look() != mine:
            return


done = attempts = 0
while done < rounds or not os.path.exists(os.path.join(witness, "stop")):
    acquired = acquire()
    attempts += 1
    with open(os.path.join(witness, "attempts." + me), "w") as file:
        file.write(f"{attempts}\n")
    if acquired:
        critical()
        release()
        done += 1
    time.sleep(float(os.environ.get("REST", "0.01")))
say("finished after", done, "rounds")
