package tower_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/tower"
)

const path = "/root/tower-fleet/logs/locks/money-tracker-production.lock"

func lock(t testing.TB, requestID, created, heartbeat string) *tower.Lock {
	t.Helper()
	l, err := tower.Parse([]byte(example))
	require.NoError(t, err)
	l.RequestID, l.CreatedAt, l.LastHeartbeatAt = requestID, at(created), at(heartbeat)
	return l
}

func requireJSON(t testing.TB, want string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

func TestTower43AcquiredEvent(t *testing.T) {
	l := lock(t, "req_abc123", "10:30:10", "10:30:10")
	requireJSON(t, `{"event":"lock_acquired","request_id":"req_abc123",`+
		`"timestamp":"2025-12-18T10:30:10Z","lock_name":"money-tracker-production",`+
		`"lock_path":"`+path+`","ttl_seconds":900}`, l.Acquired(path, at("10:30:10.5")))
}

func TestTower44BlockedResponseMustNameTheHolder(t *testing.T) {
	l := lock(t, "req_xyz789", "10:25:00", "10:29:45")
	requireJSON(t, `{"error":"lock_blocked","lock_name":"money-tracker-production","held_by":{`+
		`"request_id":"req_xyz789","actor":"claude-code","intent":"deploy-app",`+
		`"created_at":"2025-12-18T10:25:00Z","last_heartbeat_at":"2025-12-18T10:29:45Z"},`+
		`"suggestion":"Wait for completion or use --force-lock if stale"}`, l.Blocked())
}

func TestTower63StaleResponse(t *testing.T) {
	l := lock(t, "req_old123", "10:00:00", "10:00:00")
	requireJSON(t, `{"error":"lock_stale","lock_name":"money-tracker-production",`+
		`"stale_since":"2025-12-18T10:15:00Z","age_seconds":1800,"ttl_seconds":900,"held_by":{`+
		`"request_id":"req_old123","actor":"claude-code","host_id":"tower-01","pid":12345},`+
		`"suggestion":"Use --force-lock to acquire (stale lock will be logged)"}`,
		l.BlockedStale(at("10:30:00")))
}

func TestTower72StolenEvent(t *testing.T) {
	previous, err := lock(t, "req_old123", "10:00:00", "10:15:00").Render()
	require.NoError(t, err)
	event, err := lock(t, "req_new456", "10:45:00", "10:45:00").Stolen(previous, at("10:45:00"))
	require.NoError(t, err)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", event.PreviousLockHash)
	require.Equal(t, tower.Hash(previous), event.PreviousLockHash)

	event.PreviousLockHash = "sha256:abc123..."
	requireJSON(t, `{"event":"lock_stolen","request_id":"req_new456",`+
		`"timestamp":"2025-12-18T10:45:00Z","lock_name":"money-tracker-production","previous_lock":{`+
		`"request_id":"req_old123","actor":"claude-code","intent":"deploy-app",`+
		`"created_at":"2025-12-18T10:00:00Z","last_heartbeat_at":"2025-12-18T10:15:00Z",`+
		`"host_id":"tower-01","pid":12345},"previous_lock_hash":"sha256:abc123...",`+
		`"reason":"stale_lock_forced"}`, event)

	_, err = lock(t, "req_new456", "10:45:00", "10:45:00").Stolen([]byte("{"), at("10:45:00"))
	require.Error(t, err)
}

func TestTower72HashIsOfTheWholeContent(t *testing.T) {
	require.Equal(t, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", tower.Hash(nil))
	require.NotEqual(t, tower.Hash([]byte(example)), tower.Hash([]byte(example+"\n")))
}

func TestTower81ReleasedEvent(t *testing.T) {
	l := lock(t, "req_abc123", "10:30:00", "10:40:00")
	requireJSON(t, `{"event":"lock_released","request_id":"req_abc123",`+
		`"timestamp":"2025-12-18T10:45:00Z","lock_name":"money-tracker-production",`+
		`"held_duration_seconds":900,"result":"success"}`, l.Released(at("10:45:00")))
	require.Zero(t, l.Released(at("10:00:00")).HeldDurationSeconds, "the clock went back")
}

func TestTower82ReleasedAfterFailureEvent(t *testing.T) {
	l := lock(t, "req_abc123", "10:35:00", "10:40:00")
	requireJSON(t, `{"event":"lock_released","request_id":"req_abc123",`+
		`"timestamp":"2025-12-18T10:45:00Z","lock_name":"money-tracker-production",`+
		`"held_duration_seconds":600,"result":"failure","failure_step":"deploy_manifests"}`,
		l.ReleasedFailed("deploy_manifests", at("10:45:00")))
}

func TestTower83ReleaseFailedEvent(t *testing.T) {
	l := lock(t, "req_abc123", "10:35:00", "10:40:00")
	denied := &fs.PathError{Op: "remove", Path: path, Err: syscall.EACCES}
	requireJSON(t, `{"event":"lock_release_failed","request_id":"req_abc123",`+
		`"timestamp":"2025-12-18T10:45:00Z","lock_name":"money-tracker-production",`+
		`"lock_path":"`+path+`","error":"EACCES: permission denied",`+
		`"action":"manual_cleanup_required"}`, l.ReleaseFailed(path, denied, at("10:45:00")))

	require.Equal(t, "lost", l.ReleaseFailed(path, errors.New("lost"), at("10:45:00")).Error)
	other := l.ReleaseFailed(path, syscall.EXDEV, at("10:45:00")).Error
	require.True(t, strings.HasPrefix(other, "errno "), other)
}

func TestTower54HeartbeatFailedEvent(t *testing.T) {
	l := lock(t, "req_abc123", "10:35:00", "10:40:00")
	requireJSON(t, `{"event":"heartbeat_failed","request_id":"req_abc123",`+
		`"timestamp":"2025-12-18T10:45:00Z","lock_name":"money-tracker-production",`+
		`"lock_path":"`+path+`","error":"ESTALE: stale file handle","consecutive_failures":3}`,
		l.HeartbeatFailed(path, 3, syscall.ESTALE, at("10:45:00")))
}
