#!/bin/bash
# The nine steps by which the swarm specification wants a swarm_lock.sh verified ("Verify all success
# criteria"). Called with the command to verify; SWARM_STATE_DIR says where the locks are to be. Prints a line
# for each step and fails if one does. It runs without -e, for in two of the steps the command has to fail.
locks=$SWARM_STATE_DIR/locks
failed=0

step() { # NUMBER DESCRIPTION, with $? as the outcome
    if [ $? -eq 0 ]; then echo "PASS $1: $2"; else echo "FAIL $1: $2"; failed=1; fi
}

rm -rf "$locks"

"$@" acquire task-001 worker-0 && [ -f "$locks/task-001.lock" ]
step 1 "a lock is a file"

"$@" acquire task-001 worker-0
[ $? -ne 0 ]
step 2 "a task that is locked cannot be locked, by the same worker neither"

"$@" check task-001 | grep -q Active
step 3 "it is shown as active"

"$@" release task-001 worker-0 && [ ! -f "$locks/task-001.lock" ]
step 4 "its worker releases it, and the file is gone"

"$@" acquire task-001 worker-0 && [ -f "$locks/task-001.lock" ]
step 5 "what was released can be locked again"

"$@" release task-001 wrong-worker
[ $? -ne 0 ] && [ -f "$locks/task-001.lock" ]
step 6 "another worker cannot release it"

"$@" list | grep -q task-001
step 7 "it is listed"

rm -rf "$locks"
"$@" acquire task-002 worker-0 1 && sleep 2 && "$@" check task-002 | grep -q Expired
step 8 "after its time it is shown as expired"

"$@" acquire task-002 worker-0 && [ -f "$locks/task-002.lock" ] && "$@" check task-002 | grep -q Active
step 9 "what has expired can be locked again"

rm -rf "$locks"
exit $failed
