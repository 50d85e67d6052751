package lockfact_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
)

const mtime = 5_000

func factsOf(format lockfact.Format) lockfact.Facts {
	return lockfact.Facts{
		Format: format, Holder: "h", Host: "n1", PID: 7, IssuedAt: 1_000, ExpiresAt: 2_000,
		Guard: lockfact.GuardHost, OnStale: lockfact.Remove,
	}
}

// contentFormats are those that a content can be of.
func contentFormats() []lockfact.Format {
	return slices.DeleteFunc(lockfact.Formats(), func(f lockfact.Format) bool { return f == lockfact.Data })
}

func none() lockfact.Facts { return lockfact.NoneFacts("n1") }

func TestNoRuleGovernsNothing(t *testing.T) {
	for _, format := range contentFormats() {
		f := factsOf(format)
		require.Equal(t, f, lockfact.Rule{}.Govern(f, mtime))
		require.Equal(t, f, lockfact.Rule{Format: format, HostTimeout: 1}.Govern(f, mtime))
	}
}

func TestStaleAfterGoverns(t *testing.T) {
	rule := lockfact.Rule{StaleAfter: 100}
	for _, format := range contentFormats() {
		want := factsOf(format)
		switch format {
		case lockfact.Semaphore:
			want.ExpiresAt = 1_100 + int64(lockfact.Cut) // its timestamp is in whole seconds
		case lockfact.None:
			want.ExpiresAt = 5_100
		}
		require.Equal(t, want, rule.Govern(factsOf(format), mtime))
		rule.Format = format
		require.Equal(t, want, rule.Govern(factsOf(format), mtime), "the format is the one it wants")
		rule.Format = 0
	}
	require.Equal(t, none(), rule.Govern(none(), 0), "no mtime is no evidence")
}

func TestAnotherFormatThanTheRulesIsNone(t *testing.T) {
	for _, want := range contentFormats() {
		for _, format := range contentFormats() {
			if format == want {
				continue
			}
			rule := lockfact.Rule{Format: want, StaleAfter: 100}
			expected := none()
			if want == lockfact.None {
				expected.ExpiresAt = 5_100 // the rule says after how long
			}
			require.Equal(t, expected, rule.Govern(factsOf(format), mtime), "%s by a rule for %s", format, want)

			rule.Guard, rule.OnStale = lockfact.GuardHost, lockfact.Remove
			expected.Guard, expected.OnStale = lockfact.GuardHost, lockfact.Remove
			require.Equal(t, expected, rule.Govern(factsOf(format), mtime), "%s by a rule for %s", format, want)
		}
	}
}

func TestGuardAndOnStaleGovernEveryFormat(t *testing.T) {
	f := factsOf(lockfact.Forrst)
	f.Guard = lockfact.GuardOwner
	require.Equal(t, lockfact.GuardOwner, lockfact.Rule{OnStale: lockfact.Keep}.Govern(f, 0).Guard)
	require.Equal(t, lockfact.GuardHost, lockfact.Rule{Guard: lockfact.GuardHost}.Govern(f, 0).Guard)
	for _, format := range contentFormats() {
		rule := lockfact.Rule{Guard: lockfact.GuardAnyone, OnStale: lockfact.Keep}
		want := factsOf(format)
		want.Guard, want.OnStale = lockfact.GuardAnyone, lockfact.Keep
		require.Equal(t, want, rule.Govern(factsOf(format), mtime))
	}
}

func TestGovernedExpiryStaysInRange(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	for _, c := range []struct {
		from  int64
		after time.Duration
		want  int64
	}{
		{0, 1, 1}, // a semaphore that was issued at the epoch
		{-1, 1, 1},
		{-2, 1, -1},
		{most - 1, 1, most},
		{most, 1, most},
		{most, most, most},
		{1, most, most},
		{least, 1, least + 1},
		{least, most, -1},
		{-most, most, 1},
		{least, -1, least}, // no valid rule, and yet no nonsense
		{5, -5, 1},
	} {
		rule := lockfact.Rule{StaleAfter: c.after}
		if latest := c.from - int64(lockfact.Cut); latest < c.from {
			semaphore := lockfact.Facts{Format: lockfact.Semaphore, IssuedAt: latest}
			require.Equal(t, c.want, rule.Govern(semaphore, 0).ExpiresAt, "%d + %d", c.from, c.after)
		}
		if c.from != 0 {
			require.Equal(t, c.want, rule.Govern(none(), c.from).ExpiresAt, "%d + %d", c.from, c.after)
		}
	}
}

func TestWhatIsDataByItsRuleIsNoLock(t *testing.T) {
	rule := lockfact.Rule{Format: lockfact.Data, StaleAfter: 1, OnStale: lockfact.Remove, Guard: lockfact.GuardHost}
	for _, format := range contentFormats() {
		require.Equal(t, none(), rule.Govern(factsOf(format), mtime), format)
	}
}

func TestAnInvalidLockIsNeverStale(t *testing.T) {
	for _, format := range contentFormats() {
		invalid := lockfact.InvalidFacts(format, errors.New("x: is required"), lockfact.GuardHost, "n1")
		require.Equal(t, lockfact.Facts{
			Format: format, Invalid: "x: is required", Host: "n1", Guard: lockfact.GuardHost, OnStale: lockfact.Keep,
		}, invalid)
		governed := lockfact.Rule{StaleAfter: 1, OnStale: lockfact.Remove}.Govern(invalid, mtime)
		require.False(t, governed.StaleAt(math.MaxInt64), format)
		require.False(t, governed.ByProcess(), format)
	}
	problem := lockfact.InvalidFacts(lockfact.Tower, errors.New(strings.Repeat("a\nb", 200)), 0, "").Invalid
	require.LessOrEqual(t, len(problem), 255)
	require.NotContains(t, problem, "\n")
}

func TestTheHolderOfARuleIsNotOfTheContent(t *testing.T) {
	for _, format := range contentFormats() {
		rule := lockfact.Rule{Holder: lockfact.HolderCreator}
		require.Equal(t, factsOf(format), rule.Govern(factsOf(format), mtime))
	}
}
