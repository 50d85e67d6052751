"""Several processes that create and remove names in one directory, one after the other, until a call fails.

Called with the directory and how many there are to be. Says "creates N" when the Nth has made its first name, and "all have
ended" at the end.
"""

import os
import sys

directory, count = sys.argv[1], int(sys.argv[2])


def create(number):
    os.chdir(directory)
    name = "name%d" % number
    said = False
    while True:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(name)
        if not said:
            os.write(1, b"creates %d\n" % number)  # in one piece
            said = True


for number in range(count):
    if os.fork() == 0:
        try:
            create(number)
        except OSError as error:
            print(error, flush=True)
        os._exit(0)
for _ in range(count):
    os.wait()
print("all have ended", flush=True)
