package formats_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats"
)

// One lock of each format, as their specifications show it.
const (
	towerLock = `{"lock_version":"v1","lock_name":"money-tracker-production",` +
		`"request_id":"req_abc123def456","actor":"claude-code","intent":"deploy-app",` +
		`"intent_version":"1.2.0","host_id":"tower-01","pid":12345,` +
		`"created_at":"2025-12-18T10:30:10Z","last_heartbeat_at":"2025-12-18T10:30:40Z",` +
		`"ttl_seconds":900,"metadata":{}}`
	semaphoreLock = "pid=12345\ntimestamp=1703520000\ntag=deploy-v1.2.3\n"
	swarmLock     = `{"task_id":"task-001","worker":"worker-0",` +
		`"acquired_at":"2025-02-02T10:00:00Z","expires_at":"2025-02-02T11:00:00Z"}`
	beadsLock = `{"holder":"vc-executor","pid":12345,"hostname":"dev-machine",` +
		`"started_at":"2025-10-25T12:00:00Z","version":"1.0.0"}`
	pidLock = "      1234\n"
	// a valid lock of two formats: Detect chooses swarm
	bothLock = `{"holder":"h","pid":1,"hostname":"n1","started_at":"2025-10-25T12:00:00Z",` +
		`"task_id":"t","worker":"w","acquired_at":"2025-02-02T10:00:00Z","expires_at":"2025-02-02T11:00:00Z"}`
	forrstLock = `{"urn":"urn:forrst:ext:atomicLock","key":"lock:payments.charge:user:123",` +
		`"owner":"550e8400-e29b-41d4-a716-446655440000",` +
		`"acquired_at":"2024-03-15T10:30:00Z","expires_at":"2024-03-15T10:30:30Z"}`
)

var locks = map[formats.Format]string{
	formats.Tower:     towerLock,
	formats.Semaphore: semaphoreLock,
	formats.Swarm:     swarmLock,
	formats.Beads:     beadsLock,
	formats.PID:       pidLock,
	formats.Forrst:    forrstLock,
}

func TestDetectRecognisesEachFormat(t *testing.T) {
	for format, content := range locks {
		require.Equal(t, format, formats.Detect([]byte(content)), content)
		if strings.HasPrefix(content, "{") {
			require.Equal(t, format, formats.Detect([]byte("\r\n\t "+content+" \n")))
		}
	}
}

// Every beginning of a lock is of no format, unless what is missing is not needed.
func TestDetectNothingInAHalfWrittenLock(t *testing.T) {
	whole := map[formats.Format]string{
		formats.PID:       "1",                                 // any digit is a number
		formats.Semaphore: "pid=12345\ntimestamp=1703520000",   // the tag is optional
		formats.Tower:     towerLock, formats.Swarm: swarmLock, // JSON ends with its brace
		formats.Beads: beadsLock, formats.Forrst: forrstLock,
	}
	for format, content := range locks {
		need := strings.Index(content, whole[format]) + len(whole[format])
		for cut := range need {
			require.Equal(t, formats.None, formats.Detect([]byte(content[:cut])), content[:cut])
		}
	}
}

func TestDetectNoneOfOtherContents(t *testing.T) {
	for _, content := range []string{
		"", "\n", " ", "\x00", strings.Repeat("\x00", 4096), "locked\n", "hostname 1234\n",
		"1234 5678", "1703520000", "{}", "{", "[]", "[" + towerLock + "]", "null", `"12345"`, "{}{}",
		towerLock + "\n" + towerLock, semaphoreLock + semaphoreLock, "\ufeff" + towerLock,
		`{"pid":12345}`, `{"task_id":"t"}`, `{"holder":"h","pid":1}`, "pid=12345\n", "timestamp=1703520000\n",
		"pid: 12345\ntimestamp: 1703520000\n",
	} {
		require.Equal(t, formats.None, formats.Detect([]byte(content)), content)
	}
}

func TestDetectLockVersionV1IsTowerOnly(t *testing.T) {
	for _, content := range []string{swarmLock, beadsLock, forrstLock} {
		require.Equal(t, formats.None, formats.Detect([]byte(`{"lock_version":"v1",`+content[1:])))
		require.NotEqual(t, formats.None, formats.Detect([]byte(`{"lock_version":"v2",`+content[1:])))
		require.NotEqual(t, formats.None, formats.Detect([]byte(`{"Lock_Version":"v1",`+content[1:])))
	}
	both := towerLock[:len(towerLock)-1] + "," + swarmLock[1:]
	require.Equal(t, formats.Tower, formats.Detect([]byte(both)))
}

func TestDetectNeedsExactNames(t *testing.T) {
	for format, name := range map[formats.Format]string{
		formats.Tower: "pid", formats.Swarm: "worker", formats.Beads: "hostname", formats.Forrst: "owner",
	} {
		for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], name + " "} {
			content := strings.Replace(locks[format], `"`+name+`"`, `"`+other+`"`, 1)
			require.Equal(t, formats.None, formats.Detect([]byte(content)), content)
		}
	}
	// The Kelvin sign folds to k, the long s to s: encoding/json would take both.
	require.Equal(t, formats.None, formats.Detect([]byte(strings.Replace(swarmLock, "worker", "wor\u212aer", 1))))
	require.Equal(t, formats.None, formats.Detect([]byte(strings.Replace(beadsLock, "hostname", "ho\u017ftname", 1))))
}

func TestDetectRefusesMembersThatAppearTwice(t *testing.T) {
	for _, format := range []formats.Format{formats.Tower, formats.Swarm, formats.Beads, formats.Forrst} {
		content := locks[format]
		require.Equal(t, formats.None, formats.Detect([]byte(`{"x":1,"x":1,`+content[1:])), content)
		require.Equal(t, formats.None, formats.Detect([]byte(`{"x":1,"\u0078":1,`+content[1:])), content)
		require.Equal(t, format, formats.Detect([]byte(`{"x":{"y":1,"y":2},`+content[1:])), "deeper is not looked at")
	}
}

func FuzzDetect(f *testing.F) {
	for _, content := range locks {
		f.Add([]byte(content))
	}
	for _, content := range hostile(2000) {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		format := formats.Detect(content)
		facts := formats.FactsOf(content, formats.Origin{Host: "n1"}, formats.Rule{})
		require.Equal(t, format, facts.Format)
		require.LessOrEqual(t, len(facts.Holder), 255)
		if format == formats.None {
			require.Equal(t, formats.Facts{
				Format: formats.None, Host: "n1", Guard: formats.GuardAnyone, OnStale: formats.Keep,
			}, facts)
		}
	})
}
