"""A tower lock by os.open. Called like the shell clients, see worker.sh."""

import datetime
import json
import os
import socket

import worker

lock = os.path.join(worker.directory, "app.lock")


def content():
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({
        "lock_version": "v1", "lock_name": "app", "request_id": worker.me, "actor": "test", "intent": "test",
        "intent_version": "1", "host_id": socket.gethostname(), "pid": os.getpid(), "created_at": now,
        "last_heartbeat_at": now, "ttl_seconds": 900, "metadata": {},
    })


def holder():
    with open(lock, encoding="utf-8") as file:
        return json.load(file)["request_id"]


worker.work(lock, content, holder)
