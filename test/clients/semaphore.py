"""A File-Based Semaphore by os.open, its lines ended as on Windows. Called like the shell clients, see worker.sh."""

import os
import time

import worker

lock = os.path.join(worker.directory, "lock")


def content():
    return f"pid={os.getpid()}\r\ntimestamp={int(time.time())}\r\ntag={worker.me}\r\n"


def parse_lock_file(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.strip().split("=", 1) for line in file if "=" in line)


worker.work(lock, content, lambda: parse_lock_file(lock)["tag"])
