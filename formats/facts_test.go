package formats_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		facts := formats.FactsOf([]byte(locks[format]), formats.Origin{Host: "n1"})
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
		facts := formats.FactsOf([]byte(towerLock), written)
		for age, want := range map[time.Duration]bool{0: false, 900 * time.Second: false, 901 * time.Second: true} {
			require.Equal(t, want, facts.StaleAt(cluster.Add(age).UnixNano()), age)
		}
	}
}

func TestNoneIsNeverStaleByTime(t *testing.T) {
	for _, content := range []string{"", "locked", towerLock[:50], "pid=1\ntimestamp=1"} {
		require.Equal(t, formats.Facts{
			Format: formats.None, Host: "n1", Guard: formats.GuardAnyone, OnStale: formats.Keep,
		}, formats.FactsOf([]byte(content), formats.Origin{Host: "n1"}))
	}
}
