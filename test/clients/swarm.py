"""The script of the swarm protocol, its lock made by os.open: acquire TASK WORKER.

It looks, removes what has expired, and creates: nothing in here keeps two from doing so at once.
"""

import datetime
import json
import os
import sys

_, task, worker = sys.argv[1:4]
lock = os.path.join(os.environ["SWARM_STATE_DIR"], "locks", task + ".lock")
now = datetime.datetime.now(datetime.timezone.utc)


def expired():
    try:
        with open(lock, encoding="utf-8") as file:
            expires = json.load(file)["expires_at"]
    except (FileNotFoundError, ValueError):
        return False
    return bool(expires) and datetime.datetime.fromisoformat(expires.replace("Z", "+00:00")) < now


if expired():
    try:
        os.remove(lock)
    except FileNotFoundError:
        pass
try:
    fd = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
except FileExistsError:
    print("Lock already exists")
    sys.exit(1)
with os.fdopen(fd, "w") as file:
    acquired = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    file.write(json.dumps({"task_id": task, "worker": worker, "acquired_at": acquired, "expires_at": ""}))
print("Lock acquired")
