package lockfact_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/formats/lockfact"
)

func TestNamesParse(t *testing.T) {
	for _, want := range lockfact.Formats() {
		got, err := lockfact.ParseFormat(want.String())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "Tower", "json"} {
		_, err := lockfact.ParseFormat(bad)
		require.ErrorContains(t, err, "format: ")
		_, err = lockfact.ParseGuard(bad)
		require.ErrorContains(t, err, "guard: ")
		_, err = lockfact.ParseOnStale(bad)
		require.ErrorContains(t, err, "on-stale: ")
		_, err = lockfact.ParseHolder(bad)
		require.ErrorContains(t, err, "holder: ")
	}
	guard, err := lockfact.ParseGuard("anyone")
	require.NoError(t, err)
	require.Equal(t, lockfact.GuardAnyone, guard)
	_, err = lockfact.ParseGuard("owner")
	require.Error(t, err, "only a format can have that")
	onStale, err := lockfact.ParseOnStale("remove")
	require.NoError(t, err)
	require.Equal(t, lockfact.Remove, onStale)
	holder, err := lockfact.ParseHolder("creator")
	require.NoError(t, err)
	require.Equal(t, lockfact.HolderCreator, holder)
}

func TestRuleValidates(t *testing.T) {
	require.NoError(t, lockfact.Rule{}.Validate())
	require.NoError(t, lockfact.Rule{
		Format: lockfact.PID, StaleAfter: 1, OnStale: lockfact.Keep, Guard: lockfact.GuardHost, HostTimeout: 1,
		Holder: lockfact.HolderCreator,
	}.Validate())
	for problem, rule := range map[string]lockfact.Rule{
		"format: ":       {Format: 99},
		"stale-after: ":  {StaleAfter: -1},
		"on-stale: ":     {OnStale: 99},
		"guard: ":        {Guard: lockfact.GuardOwner},
		"host-timeout: ": {HostTimeout: -1},
		"holder: ":       {Holder: 99},
	} {
		require.ErrorContains(t, rule.Validate(), problem)
	}
}

func TestARuleForDataSetsNothingElse(t *testing.T) {
	require.NoError(t, lockfact.Rule{Format: lockfact.Data}.Validate())
	for _, rule := range []lockfact.Rule{
		{StaleAfter: 1}, {OnStale: lockfact.Keep}, {Guard: lockfact.GuardAnyone}, {HostTimeout: 1},
		{Holder: lockfact.HolderCreator},
	} {
		require.NoError(t, rule.Validate())
		rule.Format = lockfact.Data
		require.EqualError(t, rule.Validate(),
			"format: data is no lock, so the rule can have no other setting")
	}
}

func TestRuleClaims(t *testing.T) {
	for _, rule := range []lockfact.Rule{
		{}, {HostTimeout: 1}, {OnStale: lockfact.Remove}, {Guard: lockfact.GuardAnyone}, {Format: lockfact.None},
		{Format: lockfact.Data},
	} {
		require.False(t, rule.Claims(), "%+v", rule)
	}
	for _, rule := range []lockfact.Rule{
		{Holder: lockfact.HolderCreator}, {StaleAfter: 1}, {Guard: lockfact.GuardHost}, {Format: lockfact.PID},
		{Format: lockfact.None, StaleAfter: 1},
	} {
		require.True(t, rule.Claims(), "%+v", rule)
	}
}

func TestStaleOnlyAfterExpiry(t *testing.T) {
	require.False(t, lockfact.Facts{}.StaleAt(math.MaxInt64), "0 is never")
	f := lockfact.Facts{ExpiresAt: 10}
	require.False(t, f.StaleAt(10))
	require.True(t, f.StaleAt(11))
}

func TestByProcess(t *testing.T) {
	for _, format := range lockfact.Formats() {
		want := format == lockfact.Beads || format == lockfact.PID
		require.Equal(t, want, lockfact.Facts{Format: format, PID: 1}.ByProcess(), format)
		require.False(t, lockfact.Facts{Format: format}.ByProcess(), "no process is known")
	}
}

func TestSameHolder(t *testing.T) {
	for _, format := range lockfact.Formats() {
		a := lockfact.Facts{Format: format, Holder: "h", Host: "n1", PID: 1, IssuedAt: 1, ExpiresAt: 1}
		b := a
		b.IssuedAt, b.ExpiresAt = 2, 2
		require.True(t, a.SameHolder(b), "renewed")
		b.Holder = "other"
		require.False(t, a.SameHolder(b))

		named := format == lockfact.Tower || format == lockfact.Swarm || format == lockfact.Forrst
		b = a
		b.PID = 2
		require.Equal(t, named, a.SameHolder(b), format)
		b = a
		b.Host = "n2"
		require.Equal(t, named, a.SameHolder(b), format)

		b = a
		b.Invalid = "x: is required"
		require.False(t, a.SameHolder(b), "an invalid content names nobody")
		require.False(t, b.SameHolder(a))
		c := b
		c.Invalid = "y: is required"
		require.True(t, b.SameHolder(c), format)
		c.Host = "n2"
		require.False(t, b.SameHolder(c), format)
	}
	require.False(t, lockfact.Facts{Format: lockfact.PID}.SameHolder(lockfact.Facts{Format: lockfact.None}))
}

func TestClusterTime(t *testing.T) {
	at := time.Unix(1000, 5)
	require.EqualValues(t, 940_000_000_005, lockfact.Origin{ClockOffset: time.Minute}.ClusterTime(at))
	require.EqualValues(t, 1060_000_000_005, lockfact.Origin{ClockOffset: -time.Minute}.ClusterTime(at))
	for year, want := range map[int]int64{1: math.MinInt64, 1677: math.MinInt64, 2263: math.MaxInt64, 9999: math.MaxInt64} {
		far := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		require.Equal(t, want, lockfact.Origin{}.ClusterTime(far))
		require.Equal(t, want, lockfact.Origin{}.Deadline(far))
	}
	for _, exact := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, math.MaxInt64 - 1, math.MaxInt64} {
		require.Equal(t, exact, lockfact.Origin{}.ClusterTime(time.Unix(0, exact)))
	}
	require.EqualValues(t, math.MaxInt64, lockfact.Origin{ClockOffset: math.MinInt64}.ClusterTime(time.Unix(0, -1)))
	require.EqualValues(t, math.MinInt64, lockfact.Origin{ClockOffset: math.MaxInt64}.ClusterTime(time.Unix(0, -1)))
	require.EqualValues(t, 1, lockfact.Origin{}.Deadline(time.Unix(0, 0)), "0 would be never")
	require.EqualValues(t, -1, lockfact.Origin{}.Deadline(time.Unix(0, -1)))
}

func TestHolderNames(t *testing.T) {
	for name, want := range map[string]string{
		"worker-0":    "worker-0",
		"":            "",
		`DOMAIN\user`: `DOMAIN\user`,
		"Jörg 引":      "Jörg 引",
		"a\nb":        `"a\nb"`,
		"\x1b[2J":     `"\x1b[2J"`,
		`"a\nb"`:      `"\"a\\nb\""`,
		"a\xff":       `"a\xff"`,
	} {
		require.Equal(t, want, lockfact.HolderName(name))
	}
	long := strings.Repeat("x", 255)
	require.Equal(t, long, lockfact.HolderName(long))
	require.NotEqual(t, lockfact.HolderName(long+"a"), lockfact.HolderName(long+"b"))
}

func TestHolderNamesAreShortPrintableAndDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.RuneFrom([]rune("a\"\\n\n\x00é引")), 0, 120, -1)
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		if rapid.Bool().Draw(t, "common beginning") {
			common := strings.Repeat("引", 80)
			a, b = common+a, common+b
		}
		x, y := lockfact.HolderName(a), lockfact.HolderName(b)
		require.Equal(t, a == b, x == y, "%q %q", a, b)
		require.LessOrEqual(t, len(x), 255)
		require.True(t, utf8.ValidString(x))
		require.NotContains(t, x, "\n")
	})
}

func TestCheckPID(t *testing.T) {
	require.NoError(t, lockfact.CheckPID(1))
	require.NoError(t, lockfact.CheckPID(math.MaxInt32))
	for _, pid := range []int64{0, -1, math.MaxInt32 + 1} {
		require.EqualError(t, lockfact.CheckPID(pid), "pid: must be between 1 and 2147483647")
	}
}
