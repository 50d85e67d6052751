package formats_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/formats"
)

var start = time.Date(2025, 12, 18, 10, 0, 0, 0, time.UTC)

// The rows of the design's table: who may remove it while it lives, and what happens when it is stale.
func TestFactsOfEachFormat(t *testing.T) {
	type row struct {
		holder  string
		expires string
		guard   formats.Guard
		onStale formats.OnStale
	}
	for format, want := range map[formats.Format]row{
		formats.Tower:     {"req_abc123def456", "2025-12-18T10:45:40Z", formats.GuardHost, formats.Keep},
		formats.Semaphore: {"12345", "2023-12-25T17:00:00Z", formats.GuardHost, formats.Keep},
		formats.Swarm:     {"worker-0", "2025-02-02T11:00:00Z", formats.GuardAnyone, formats.Keep},
		formats.Beads:     {"vc-executor", "", formats.GuardHost, formats.Remove},
		formats.PID:       {"1234", "", formats.GuardHost, formats.Remove},
		formats.Forrst: {
			"550e8400-e29b-41d4-a716-446655440000", "2024-03-15T10:30:30Z", formats.GuardOwner, formats.Remove,
		},
	} {
		facts := formats.FactsOf([]byte(locks[format]), formats.Origin{Host: "n1"}, formats.Rule{})
		require.Equal(t, format, facts.Format)
		got := row{facts.Holder, "", facts.Guard, facts.OnStale}
		if facts.ExpiresAt != 0 {
			got.expires = time.Unix(0, facts.ExpiresAt).UTC().Format(time.RFC3339)
		}
		require.Equal(t, want, got)
		require.Equal(t, "n1", facts.Host)
	}
}

// A host whose clock is an hour slow writes a fresh lock: it is not an hour old.
func TestTimestampsAreReadOnTheClockOfTheWriter(t *testing.T) {
	heartbeat := time.Date(2025, 12, 18, 10, 30, 40, 0, time.UTC)
	for _, offset := range []time.Duration{-time.Hour, 0, time.Hour} {
		written := formats.Origin{ClockOffset: offset}
		cluster := heartbeat.Add(-offset) // when it was written
		for age, want := range map[time.Duration]formats.State{
			0: formats.Held, 900 * time.Second: formats.Held, 901 * time.Second: formats.Stale,
		} {
			v := formats.Judge([]byte(towerLock), cluster.Add(age), written, formats.Rule{})
			require.Equal(t, want, v.State, v.Reason)
		}
	}
}

func TestNoneIsNeverStaleWithoutARule(t *testing.T) {
	later := start.AddDate(200, 0, 0)
	for _, content := range []string{"", "locked", towerLock[:50], "pid=1\ntimestamp=1"} {
		v := formats.Judge([]byte(content), later, formats.Origin{Mtime: start}, formats.Rule{})
		require.Equal(t, formats.Held, v.State)
		require.Zero(t, formats.FactsOf([]byte(content), formats.Origin{Mtime: start}, formats.Rule{}).ExpiresAt)
	}
}

func TestNoneIsStaleByMtimeWithARule(t *testing.T) {
	rule := formats.Rule{StaleAfter: 10 * time.Minute, OnStale: formats.Remove}
	written := formats.Origin{Mtime: start, ClockOffset: time.Hour} // mtimes are in cluster time
	for age, want := range map[time.Duration]formats.Verdict{
		10 * time.Minute: {State: formats.Held, Reason: "last changed 600 s ago, stale after 600 s"},
		11 * time.Minute: {State: formats.Stale, Reason: "last changed 660 s ago, stale after 600 s"},
	} {
		require.Equal(t, want, formats.Judge(nil, start.Add(age), written, rule))
	}
	facts := formats.FactsOf(nil, written, rule)
	require.Equal(t, start.Add(10*time.Minute).UnixNano(), facts.ExpiresAt)
	require.Equal(t, formats.Remove, facts.OnStale)

	unknown := formats.Origin{}
	require.Equal(t, formats.Held, formats.Judge(nil, start, unknown, rule).State, "no mtime is no evidence")
	require.Zero(t, formats.FactsOf(nil, unknown, rule).ExpiresAt)
}

func TestForcedFormat(t *testing.T) {
	forced := func(f formats.Format) formats.Rule { return formats.Rule{Format: f, StaleAfter: time.Second} }
	written := formats.Origin{Host: "n1", Mtime: start}
	for format, content := range locks {
		require.Equal(t, format, formats.FactsOf([]byte(content), written, forced(format)).Format)

		none := formats.FactsOf([]byte(content), written, forced(formats.None))
		require.Equal(t, formats.None, none.Format)
		require.Equal(t, start.Add(time.Second).UnixNano(), none.ExpiresAt)
		for other := range locks {
			if other == format {
				continue
			}
			require.Equal(t, formats.Facts{
				Format: formats.None, Host: "n1", Guard: formats.GuardAnyone, OnStale: formats.Keep,
			}, formats.FactsOf([]byte(content), written, forced(other)), "%s taken for %s", format, other)
			v := formats.Judge([]byte(content), start.AddDate(100, 0, 0), written, forced(other))
			require.Equal(t, formats.Held, v.State)
			require.Equal(t, fmt.Sprintf("not the %s lock that the rule wants: it is a %s lock", other, format), v.Reason)
		}
	}
}

// A rule's format takes nothing for a lock that is not one without the rule.
func TestForcedFormatTakesOnlyWhatIsRecognised(t *testing.T) {
	later := start.AddDate(100, 0, 0)
	for _, c := range []struct {
		content    string
		recognised formats.Format
		forced     formats.Format
		reason     string
	}{
		{bothLock, formats.Swarm, formats.Beads, "not the beads lock that the rule wants: it is a swarm lock"},
		{`{"urn":"urn:forrst:ext:atomicLock",` + swarmLock[1:], formats.Forrst, formats.Swarm,
			"not the swarm lock that the rule wants: it is a forrst lock"},
		{"pid=1\n", formats.None, formats.Semaphore,
			"not the semaphore lock that the rule wants: timestamp: is required"},
		{"x", formats.None, formats.PID,
			"not the pid lock that the rule wants: pid: must be nothing but a decimal number"},
	} {
		require.Equal(t, c.recognised, formats.Detect([]byte(c.content)))
		rule := formats.Rule{Format: c.forced}
		require.Equal(t, formats.None, formats.FactsOf([]byte(c.content), formats.Origin{}, rule).Format)
		require.Equal(t, formats.Verdict{State: formats.Held, Reason: c.reason},
			formats.Judge([]byte(c.content), later, formats.Origin{}, rule))
	}
}

func TestNothingIsALockWhereTheRuleSaysData(t *testing.T) {
	rule := formats.Rule{Format: formats.Data}
	written := formats.Origin{Host: "n1", Mtime: start}
	for _, content := range locks {
		require.Equal(t, formats.Facts{
			Format: formats.None, Host: "n1", Guard: formats.GuardAnyone, OnStale: formats.Keep,
		}, formats.FactsOf([]byte(content), written, rule))
		require.Equal(t, formats.Verdict{State: formats.Held, Reason: "data by its rule, and no lock"},
			formats.Judge([]byte(content), start.AddDate(100, 0, 0), written, rule))
	}
}

func TestMtimeAtTheEpochIsNotKnown(t *testing.T) {
	rule := formats.Rule{StaleAfter: time.Second}
	written := formats.Origin{Mtime: time.Unix(0, 0)}
	require.Zero(t, formats.FactsOf(nil, written, rule).ExpiresAt)
	require.Equal(t, formats.Held, formats.Judge(nil, start, written, rule).State)
}

func TestRuleSetsGuardAndOnStaleOfEveryFormat(t *testing.T) {
	rule := formats.Rule{Guard: formats.GuardAnyone, OnStale: formats.Remove}
	for _, content := range locks {
		facts := formats.FactsOf([]byte(content), formats.Origin{}, rule)
		require.Equal(t, formats.GuardAnyone, facts.Guard)
		require.Equal(t, formats.Remove, facts.OnStale)
	}
}

// What is worked out once says the same as judging again, at any time and on any clock.
func TestFactsAgreeWithJudge(t *testing.T) {
	contents := []string{
		towerLock, semaphoreLock, swarmLock, beadsLock, pidLock, forrstLock, "", "x", towerLock[:70],
		bothLock, `{"lock_version":"v1",` + swarmLock[1:],
	}
	choices := append([]formats.Format{"", formats.None}, formats.Tower, formats.Semaphore, formats.Swarm,
		formats.Beads, formats.PID, formats.Forrst)
	rapid.Check(t, func(t *rapid.T) {
		content := []byte(rapid.SampledFrom(contents).Draw(t, "content"))
		written := formats.Origin{ClockOffset: drawOffset(t), Mtime: start}
		rule := formats.Rule{
			Format:     rapid.SampledFrom(choices).Draw(t, "format"),
			StaleAfter: time.Duration(rapid.Int64Range(0, 1e13).Draw(t, "stale after")),
		}
		facts := formats.FactsOf(content, written, rule)
		now := time.Unix(0, facts.ExpiresAt+rapid.Int64Range(-2, 2).Draw(t, "near"))
		if facts.ExpiresAt == math.MaxInt64 || rapid.Bool().Draw(t, "far") {
			now = start.Add(time.Duration(rapid.Int64Range(-1e17, 1e17).Draw(t, "now")))
		}
		v := formats.Judge(content, now, written, rule)
		require.Equal(t, v.State == formats.Stale, facts.StaleAt(now.UnixNano()), v.Reason)
		require.NotEmpty(t, v.Reason)
	})
}
