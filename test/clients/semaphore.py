"""A File-Based Semaphore by os.open, its lines ended as on Windows. Called like the shell clients, see worker.sh."""

import os
import sys
import time

directory, witness, me, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
lock = os.path.join(directory, "lock")


def parse_lock_file(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.strip().split("=", 1) for line in file if "=" in line)


def acquire():
    try:
        fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    os.write(fd, f"pid={os.getpid()}\r\ntimestamp={int(time.time())}\r\ntag={me}\r\n".encode())
    os.fsync(fd)
    os.close(fd)
    return True


def record(line):
    fd = os.open(os.path.join(witness, "log"), os.O_WRONLY | os.O_APPEND)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def critical():
    record("enter " + me)
    if parse_lock_file(lock)["tag"] != me:
        print("error: the lock says", parse_lock_file(lock))
    path = os.path.join(witness, "count")
    with open(path, encoding="ascii") as file:
        count = int(file.read())
    time.sleep(0.01)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{count + 1}\n")
    record("leave " + me)


done = 0
while done < rounds or not os.path.exists(os.path.join(witness, "stop")):
    if acquire():
        critical()
        os.unlink(lock)
        done += 1
    time.sleep(0.01)
print("finished after", done, "rounds")
