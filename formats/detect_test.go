package formats_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats"
	"lockfs/test/fuzzing"
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
		towerLock + "\n" + towerLock, "\ufeff" + towerLock,
		`{"pid":12345}`, `{"task_id":"t"}`, `{"holder":"h","pid":1}`, "pid=12345\n", "timestamp=1703520000\n",
		"pid: 12345\ntimestamp: 1703520000\n",
	} {
		require.Equal(t, formats.None, formats.Detect([]byte(content)), content)
	}
}

func TestDetectLockVersionV1IsTowerOnly(t *testing.T) {
	for _, content := range []string{swarmLock, beadsLock, forrstLock} {
		require.Equal(t, formats.Tower, formats.Detect([]byte(`{"lock_version":"v1",`+content[1:])))
		for _, other := range []string{`{"lock_version":"v2",`, `{"Lock_Version":"v1",`, `{"lock_version":1,`} {
			format := formats.Detect([]byte(other + content[1:]))
			require.Equal(t, formats.Detect([]byte(content)), format)
		}
	}
	both := towerLock[:len(towerLock)-1] + "," + swarmLock[1:]
	require.Equal(t, formats.Tower, formats.Detect([]byte(both)))
}

func TestDetectNeedsExactNames(t *testing.T) {
	for format, name := range map[formats.Format]string{
		formats.Tower: "lock_version", formats.Swarm: "worker", formats.Beads: "hostname", formats.Forrst: "urn",
	} {
		for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], name + " "} {
			content := strings.Replace(locks[format], `"`+name+`"`, `"`+other+`"`, 1)
			require.Equal(t, formats.None, formats.Detect([]byte(content)), content)
		}
	}
	// The Kelvin sign folds to k, the long s to s: encoding/json would take both.
	require.Equal(t, formats.None, formats.Detect([]byte(strings.Replace(swarmLock, "worker", "wor\u212aer", 1))))
	require.Equal(t, formats.None, formats.Detect([]byte(strings.Replace(beadsLock, "hostname", "ho\u017ftname", 1))))
	for _, content := range []string{"PID=1\ntimestamp=1703520000\n", "pid =1\ntimestamp =1703520000\n"} {
		require.Equal(t, formats.None, formats.Detect([]byte(content)), content)
	}
}

// Content that says which protocol it follows and breaks one of its rules is not taken for data: it keeps the guard of
// its format, and nothing makes it stale.
func TestInvalidLocksKeepTheirFormat(t *testing.T) {
	replace := func(format formats.Format, old, by string) string {
		content := strings.Replace(locks[format], old, by, 1)
		require.NotEqual(t, locks[format], content)
		return content
	}
	for _, row := range []struct {
		format           formats.Format
		content, problem string
	}{
		{formats.Tower, replace(formats.Tower, "req_abc123def456", `req\n42`), "request_id: "},
		{formats.Tower, replace(formats.Tower, "10:30:40Z", "10:30:09Z"), "last_heartbeat_at: lies before created_at"},
		{formats.Tower, replace(formats.Tower, `"pid":12345`, `"pid":"12345"`), "pid: must be an integer"},
		{formats.Tower, replace(formats.Tower, "40Z", "40+00:30"), "last_heartbeat_at: must be in UTC"},
		{formats.Tower, replace(formats.Tower, "claude-code", "cla\xffde"), "not valid UTF-8"},
		{formats.Tower, replace(formats.Tower, "{", `{"ttl_seconds":1,`), "ttl_seconds: appears twice"},
		{formats.Tower, replace(formats.Tower, `"v1"`, `"v2","lock_version":"v1"`), "lock_version: appears twice"},
		{formats.Tower, `{"lock_version":"v1"}`, "lock_name: is required"},
		{formats.Tower, `{"lock_version":"v1",` + beadsLock[1:], "lock_name: is required"},
		{formats.Forrst, replace(formats.Forrst, "owner", "Owner"), "owner: is required"},
		{formats.Forrst, `{"urn":"urn:forrst:ext:atomicLock"}`, "key: is required"},
		{formats.Swarm, replace(formats.Swarm, "acquired_at", "since"), "acquired_at: is required"},
		{formats.Swarm, `{"task_id":1,"worker":null}`, "task_id: must be a string"},
		{formats.Beads, replace(formats.Beads, "12345", "0"), "pid: must be between"},
		{formats.Beads, replace(formats.Beads, `"dev-machine"`, "null"), "hostname: is required"},
		{formats.Semaphore, "pid=me\ntimestamp=1703520000\n", "line 1: pid: must be an integer"},
		{formats.Semaphore, "timestamp=\npid=7", "timestamp: must be an integer"},
		{formats.Semaphore, semaphoreLock + semaphoreLock, "line 4: pid: appears twice"},
		{formats.Semaphore, semaphoreLock + "\xff\n", "not valid UTF-8"},
		{formats.Semaphore, "{\n" + semaphoreLock + " pid=7", "line 5: pid: appears twice"},
	} {
		require.Equal(t, row.format, formats.Detect([]byte(row.content)), row.content)
		written := formats.Origin{Host: "n1", Hostname: "dev-machine"}
		facts := formats.FactsOf([]byte(row.content), written)
		require.Contains(t, facts.Invalid, row.problem, row.content)
		valid := formats.FactsOf([]byte(locks[row.format]), written)
		require.Empty(t, valid.Invalid)
		require.Equal(t, formats.Facts{
			Format: row.format, Invalid: facts.Invalid, Host: "n1", Guard: valid.Guard, OnStale: formats.Keep,
		}, facts)
		for _, rule := range []formats.Rule{{}, {StaleAfter: 1}, {Format: row.format, StaleAfter: 1}} {
			require.Zero(t, rule.Govern(facts, start.UnixNano()).ExpiresAt, "%+v", rule)
		}
	}
}

func TestMembersThatAppearTwiceAreInvalid(t *testing.T) {
	for _, format := range []formats.Format{formats.Tower, formats.Swarm, formats.Beads, formats.Forrst} {
		invalid := func(content string) string {
			require.Equal(t, format, formats.Detect([]byte(content)))
			return formats.FactsOf([]byte(content), formats.Origin{}).Invalid
		}
		content := locks[format]
		require.Equal(t, "x: appears twice", invalid(`{"x":1,"x":1,`+content[1:]))
		require.Equal(t, "x: appears twice", invalid(`{"x":1,"\u0078":1,`+content[1:]))
		require.Empty(t, invalid(`{"x":{"y":1,"y":2},`+content[1:]), "deeper is not looked at")
	}
	require.Equal(t, formats.None, formats.Detect([]byte(`{"lock_version":"v1","lock_version":"v2"}`)), "the last counts")
}

func FuzzDetect(f *testing.F) {
	for _, content := range locks {
		f.Add([]byte(content))
	}
	for _, content := range hostile(2000) {
		f.Add(content)
	}
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		format := formats.Detect(content)
		facts := formats.FactsOf(content, formats.Origin{Host: "n1"})
		require.Equal(t, format, facts.Format)
		require.LessOrEqual(t, len(facts.Holder), 255)
		require.LessOrEqual(t, len(facts.Invalid), 255)
		for _, own := range ownFactsOf {
			valid, err := own(content, formats.Origin{Host: "n1"})
			require.False(t, err == nil && format == formats.None, "a lock has its mark")
			require.False(t, err == nil && valid.Format == format && facts.Invalid != "")
		}
		if format == formats.None {
			require.Equal(t, formats.Facts{
				Format: formats.None, Host: "n1", Guard: formats.GuardAnyone, OnStale: formats.Keep,
			}, facts)
		}
	})
}
