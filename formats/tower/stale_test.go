package tower_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/formats/tower"
)

// A heartbeat in whole seconds was cut to that: it may be from any time in its second.
func TestTower61StaleOnlyWhenAgeIsGreaterThanTTL(t *testing.T) {
	heartbeat := at("10:30:40")
	l, err := tower.Parse([]byte(example))
	require.NoError(t, err)
	for age, want := range map[time.Duration]bool{
		-time.Hour:                          false,
		0:                                   false,
		900*time.Second - 1:                 false,
		900 * time.Second:                   false,
		901*time.Second - 1:                 false,
		901 * time.Second:                   true,
		200 * 365 * 24 * 3600 * time.Second: true,
	} {
		require.Equal(t, want, l.Stale(heartbeat.Add(age)), "%v", age)
	}
	exact, err := tower.Parse(with(t, "last_heartbeat_at", `"2025-12-18T10:30:40.5Z"`))
	require.NoError(t, err)
	for age, want := range map[time.Duration]bool{900 * time.Second: false, 900*time.Second + 1: true} {
		require.Equal(t, want, exact.Stale(heartbeat.Add(time.Second/2+age)), "it was not cut")
	}
}

func TestTower61HugeTTLNeverOverflows(t *testing.T) {
	content := with(t, "ttl_seconds", "9223372036854775807")
	l, err := tower.Parse(content)
	require.NoError(t, err)
	require.False(t, l.Stale(at("10:30:40").AddDate(250, 0, 0)))
	facts, err := tower.FactsOf(content, lockfact.Origin{ClockOffset: math.MinInt64 + 1})
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, facts.ExpiresAt)
}

func TestTower61MalformedIsNoLock(t *testing.T) {
	for cut := range len(example) {
		_, err := tower.Parse([]byte(example[:cut]))
		require.Error(t, err)
	}
}

func TestTower122HeartbeatBeforeCreationIsInvalid(t *testing.T) {
	for heartbeat, valid := range map[string]bool{
		"10:30:10Z": true, "10:30:09Z": false, "09:30:40Z": false, "10:30:09.999999999Z": false,
	} {
		content := with(t, "last_heartbeat_at", `"2025-12-18T`+heartbeat+`"`)
		_, err := tower.Parse(content)
		require.Equal(t, valid, err == nil, heartbeat)
		if !valid {
			requireFieldError(t, err, "last_heartbeat_at")
		}
	}
	cut := strings.Replace(example, "10:30:10Z", "10:30:40.7Z", 1)
	_, err := tower.Parse([]byte(cut))
	require.NoError(t, err, "the heartbeat was cut to the second, and may be later")
}

func TestTower122HeartbeatInTheFarFutureIsReported(t *testing.T) {
	l, err := tower.Parse([]byte(example))
	require.NoError(t, err)
	require.Empty(t, l.Suspicion(at("10:30:40")))
	require.Empty(t, l.Suspicion(at("10:29:40")), "clocks differ")
	const want = "its last heartbeat lies 3640 s ahead of this host's clock, so one of them is wrong, and it is not stale before 2025-12-18T10:45:40Z"
	require.Equal(t, want, l.Suspicion(at("09:30:00")))
	require.Zero(t, l.AgeSeconds(at("09:30:00")))
	require.ErrorContains(t, &tower.BlockedError{Lock: l, At: at("09:30:00")}, want)
}

func TestTower71StealingOnlyWhenStaleAndForced(t *testing.T) {
	l, err := tower.Parse([]byte(example))
	require.NoError(t, err)
	active, stale := at("10:45:40"), at("10:45:41")
	require.False(t, l.MaySteal(active, false))
	require.False(t, l.MaySteal(active, true), "never an active lock")
	require.False(t, l.MaySteal(stale, false))
	require.True(t, l.MaySteal(stale, true))
}

func TestTower123PIDMustNotDecide(t *testing.T) {
	facts, err := tower.FactsOf([]byte(example), lockfact.Origin{Host: "n1"})
	require.NoError(t, err)
	require.Equal(t, 12345, facts.PID)
	require.False(t, facts.ByProcess())
}

func TestTowerFacts(t *testing.T) {
	written := lockfact.Origin{Host: "n1", ClockOffset: 10 * time.Minute}
	facts, err := tower.FactsOf([]byte(example), written)
	require.NoError(t, err)
	require.Equal(t, lockfact.Facts{
		Format:    lockfact.Tower,
		Holder:    "req_abc123def456",
		Host:      "n1",
		PID:       12345,
		IssuedAt:  at("10:20:40").UnixNano(),
		ExpiresAt: at("10:35:41").UnixNano() - 1, // at the latest
		Guard:     lockfact.GuardHost,
		OnStale:   lockfact.Keep,
	}, facts)

	_, err = tower.FactsOf([]byte("{}"), written)
	require.Error(t, err)
}

func TestTower91Modes(t *testing.T) {
	for _, c := range []struct {
		mode    tower.Mode
		lock    string
		locks   bool
		warning string
	}{
		{tower.Mutate, "x", true, ""},
		{tower.Mutate, "", false, "Mutate intent without lock - concurrent execution possible"},
		{tower.Reconcile, "x", true, ""},
		{tower.Reconcile, "", false, "Reconcile intent without lock - conflicting reconciliation possible"},
	} {
		locks, warning := c.mode.Locks(c.lock)
		require.Equal(t, c.locks, locks)
		require.Equal(t, c.warning, warning)
	}
	for _, name := range []string{"observe", "mutate", "reconcile"} {
		mode, err := tower.ParseMode(name)
		require.NoError(t, err)
		require.EqualValues(t, name, mode)
	}
	_, err := tower.ParseMode("Observe")
	requireFieldError(t, err, "mode")
}

func TestTower92ObserveMustNotLock(t *testing.T) {
	for _, controlsLock := range []string{"", "x"} {
		locks, warning := tower.Observe.Locks(controlsLock)
		require.False(t, locks)
		require.Empty(t, warning)
	}
}
