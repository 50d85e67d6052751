# Clean slate
rm -rf /tmp/ai_swarm/locks

# Test 1: Acquire creates lock
echo "Test 1: Acquire lock"
./scripts/swarm_lock.sh acquire task-001 worker-0
[ -f /tmp/ai_swarm/locks/task-001.lock ] && echo "PASS: Lock created" || echo "FAIL: Lock not created"

# Test 2: Acquire same task fails
echo "Test 2: Acquire existing lock (should fail)"
./scripts/swarm_lock.sh acquire task-001 worker-0
[ $? -ne 0 ] && echo "PASS: Acquire failed as expected" || echo "FAIL: Should have failed"

# Test 3: Check shows active
echo "Test 3: Check lock status"
./scripts/swarm_lock.sh check task-001 | grep -q "Active" && echo "PASS: Shows active" || echo "FAIL: Not active"

# Test 4: Release with correct worker
echo "Test 4: Release with correct worker"
./scripts/swarm_lock.sh release task-001 worker-0
[ ! -f /tmp/ai_swarm/locks/task-001.lock ] && echo "PASS: Lock deleted" || echo "FAIL: Lock not deleted"

# Test 5: Re-acquire after release
echo "Test 5: Re-acquire after release"
./scripts/swarm_lock.sh acquire task-001 worker-0
[ -f /tmp/ai_swarm/locks/task-001.lock ] && echo "PASS: Re-acquire succeeded" || echo "FAIL: Re-acquire failed"

# Test 6: Release with wrong worker fails
echo "Test 6: Release with wrong worker (should fail)"
./scripts/swarm_lock.sh release task-001 wrong-worker
[ $? -ne 0 ] && echo "PASS: Release failed as expected" || echo "FAIL: Should have failed"

# Test 7: List shows locks
echo "Test 7: List locks"
./scripts/swarm_lock.sh list | grep -q "task-001" && echo "PASS: List shows task" || echo "FAIL: List missing task"

# Test 8: TTL behavior
echo "Test 8: TTL with expiry"
rm -rf /tmp/ai_swarm/locks
./scripts/swarm_lock.sh acquire task-002 worker-0 1  # 1 second TTL
sleep 2
./scripts/swarm_lock.sh check task-002 | grep -q "Expired" && echo "PASS: Lock expired" || echo "FAIL: Lock not expired"

# Test 9: Expired lock can be re-acquired
echo "Test 9: Re-acquire expired lock"
./scripts/swarm_lock.sh acquire task-002 worker-0
[ -f /tmp/ai_swarm/locks/task-002.lock ] && echo "PASS: Expired lock replaced" || echo "FAIL: Could not replace"

# Cleanup
rm -rf /tmp/ai_swarm/locks

echo "Verification complete"
