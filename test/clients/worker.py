"""What Python clients that never fail share. They are called like the shell clients, see worker.sh."""

import os
import sys
import time

directory, witness, me, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


def create(path, content):
    """Takes a lock by os.open; False if somebody has it."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    os.write(fd, content.encode())
    os.fsync(fd)
    os.close(fd)
    return True


def record(line):
    fd = os.open(os.path.join(witness, "log"), os.O_WRONLY | os.O_APPEND)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def critical(holder):
    record("enter " + me)
    if holder() != me:
        print("error: the lock is that of", holder())
    path = os.path.join(witness, "count")
    with open(path, encoding="ascii") as file:
        count = int(file.read())
    time.sleep(0.01)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{count + 1}\n")
    record("leave " + me)


def work(lock, content, holder):
    """Takes the lock with what content() gives. holder() reads whose it is."""
    done = 0
    while done < rounds or not os.path.exists(os.path.join(witness, "stop")):
        if create(lock, content()):
            critical(holder)
            os.unlink(lock)
            done += 1
        time.sleep(0.01)
    print("finished after", done, "rounds")
