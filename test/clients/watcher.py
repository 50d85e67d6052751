"""Watches files with inotify(7) for their removal. Called with them. Says "watches", and then of each removal "removed"."""

import ctypes
import os
import struct
import sys

IN_DELETE_SELF = 0x400
libc = ctypes.CDLL(None, use_errno=True)
inotify = libc.inotify_init()
for path in sys.argv[1:]:
    if libc.inotify_add_watch(inotify, path.encode(), IN_DELETE_SELF) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
print("watches", flush=True)
while True:
    events = os.read(inotify, 4096)
    while events:
        _, mask, _, length = struct.unpack_from("iIII", events)
        events = events[16 + length:]
        if mask & IN_DELETE_SELF:
            print("removed", flush=True)
