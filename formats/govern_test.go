package formats_test

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/formats"
	"lockfs/formats/beads"
	"lockfs/formats/forrst"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// What is worked out once says the same as asking the lock again, at any time and on any clock, and a rule takes nothing
// for a lock that is none without it.
func TestFactsSayWhatTheLockSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := drawContent(t)
		written := formats.Origin{Host: "n1", Hostname: "dev-machine", ClockOffset: drawOffset(t)}
		facts := formats.FactsOf(content, written)
		require.Equal(t, formats.Detect(content), facts.Format)
		now := time.Unix(0, facts.ExpiresAt+rapid.Int64Range(-2, 2).Draw(t, "near"))
		if near := facts.ExpiresAt; near > math.MaxInt64-3 || near < math.MinInt64+3 || rapid.Bool().Draw(t, "far") {
			now = start.Add(time.Duration(rapid.Int64Range(-1e17, 1e17).Draw(t, "now")))
		}
		if facts.Format != formats.None && facts.Invalid == "" {
			own, err := ownFactsOf[facts.Format](content, written)
			require.NoError(t, err)
			require.Equal(t, own, facts)
			if there := now.Add(written.ClockOffset); there.Add(-written.ClockOffset).Equal(now) {
				require.Equal(t, isStale(t, facts.Format, content, there), facts.StaleAt(now.UnixNano()))
			}
		}
		governed := drawRule(t).Govern(facts, drawTime(t, "mtime"))
		require.Contains(t, []formats.Format{facts.Format, formats.None}, governed.Format)
	})
}

// isStale asks the lock itself, on its own clock.
func isStale(t require.TestingT, format formats.Format, content []byte, now time.Time) bool {
	var stale bool
	var err error
	switch format {
	case formats.Tower:
		var l *tower.Lock
		if l, err = tower.Parse(content); err == nil {
			stale = l.Stale(now)
		}
	case formats.Semaphore:
		var l *semaphore.Lock
		if l, err = semaphore.Parse(content); err == nil {
			stale = l.Stale(now, semaphore.DefaultStaleTimeout)
		}
	case formats.Swarm:
		var l *swarm.Lock
		if l, err = swarm.Parse(content); err == nil {
			stale = l.Status(now) == swarm.Expired
		}
	case formats.Forrst:
		var l *forrst.Lock
		if l, err = forrst.Parse(content); err == nil {
			stale = l.Expired(now)
		}
	}
	require.NoError(t, err)
	return stale
}

var ownFactsOf = map[formats.Format]func([]byte, formats.Origin) (formats.Facts, error){
	formats.Tower:     tower.FactsOf,
	formats.Semaphore: semaphore.FactsOf,
	formats.Swarm:     swarm.FactsOf,
	formats.Beads:     beads.FactsOf,
	formats.PID:       pid.FactsOf,
	formats.Forrst:    forrst.FactsOf,
}

func drawRule(t *rapid.T) formats.Rule {
	choices := []formats.Format{
		0, formats.Tower, formats.Semaphore, formats.Swarm, formats.Beads, formats.PID, formats.Forrst, formats.None,
	}
	rule := formats.Rule{
		Format:      rapid.SampledFrom(choices).Draw(t, "format"),
		OnStale:     rapid.SampledFrom([]formats.OnStale{0, formats.Keep, formats.Remove}).Draw(t, "on stale"),
		Guard:       rapid.SampledFrom([]formats.Guard{0, formats.GuardHost, formats.GuardAnyone}).Draw(t, "guard"),
		StaleAfter:  time.Duration(drawTime(t, "stale after") & math.MaxInt64),
		HostTimeout: time.Duration(rapid.Int64Min(0).Draw(t, "host timeout")),
		Holder:      rapid.SampledFrom([]formats.Holder{0, formats.HolderCreator}).Draw(t, "holder"),
	}
	if rapid.IntRange(0, 9).Draw(t, "data") == 0 {
		rule = formats.Rule{Format: formats.Data}
	}
	require.NoError(t, rule.Validate())
	return rule
}

// drawTime draws nanoseconds of any size, often near one of the ends or 0.
func drawTime(t *rapid.T, label string) int64 {
	near := rapid.Int64Range(-3, 3).Draw(t, label+", near")
	switch rapid.IntRange(0, 4).Draw(t, label) {
	case 0:
		return 0
	case 1:
		return near
	case 2:
		return math.MaxInt64 - 3 + near
	case 3:
		return math.MinInt64 + 3 + near
	}
	return rapid.Int64().Draw(t, label+", any")
}

func drawOffset(t *rapid.T) time.Duration {
	if rapid.Bool().Draw(t, "any offset") {
		return time.Duration(drawTime(t, "offset"))
	}
	return time.Duration(rapid.Int64Range(-1e13, 1e13).Draw(t, "offset"))
}

// drawContent draws a lock of any format, at any time and perhaps with the members of another, changed
// in places; or what is hostile, or nothing of the kind.
func drawContent(t *rapid.T) []byte {
	content := rapid.SampledFrom([]string{
		towerLock, semaphoreLock, swarmLock, beadsLock, pidLock, forrstLock, bothLock, "", "x", "{}",
	}).Draw(t, "content")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return drawHostile(t)
	case 1:
		return drawMutated(t, content)
	case 2:
		return drawMerged(t, content)
	case 3:
		return rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
	case 4:
		return drawRetimed(t, content)
	}
	return []byte(content)
}

var hostileContents = hostile(2000)

func drawHostile(t *rapid.T) []byte {
	names := slices.Sorted(maps.Keys(hostileContents))
	return hostileContents[rapid.SampledFrom(names).Draw(t, "hostile")]
}

// drawMutated overwrites, removes and inserts bytes, or cuts the end.
func drawMutated(t *rapid.T, content string) []byte {
	mutated := []byte(content)
	for range rapid.IntRange(1, 3).Draw(t, "mutations") {
		at := rapid.IntRange(0, len(mutated)).Draw(t, "at")
		end := min(at+rapid.IntRange(0, 2).Draw(t, "instead of"), len(mutated))
		if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
			mutated = mutated[:at]
			continue
		}
		insert := rapid.SampledFrom([]string{"", " ", "\n", "0", "9", "\x00", "\xff", `"`, ",", "{", "=", "Z"})
		mutated = bytes.Join([][]byte{mutated[:at], mutated[end:]}, []byte(insert.Draw(t, "insert")))
	}
	return mutated
}

// drawMerged puts the members of two locks into one object, or the lines of two into one file.
func drawMerged(t *rapid.T, content string) []byte {
	with := rapid.SampledFrom([]string{
		towerLock, swarmLock, beadsLock, forrstLock, `{"lock_version":"v1"}`, `{"task_id":"t","worker":1}`,
		`{"urn":"urn:forrst:ext:atomicLock"}`, `{"urn":"u"}`, `{"holder":"h","pid":7,"hostname":"n1"}`,
	}).Draw(t, "with")
	if !strings.HasPrefix(content, "{") || content == "{}" {
		return []byte(content + with)
	}
	return []byte(strings.TrimSuffix(content, "}") + "," + with[1:])
}

// drawRetimed moves the years of a lock, or a semaphore's timestamp, as far as they go.
func drawRetimed(t *rapid.T, content string) []byte {
	const (
		most = math.MaxInt64 / 1_000_000_000 // what nanoseconds can hold
		end  = 253402300799                  // 9999-12-31T23:59:59Z
	)
	seconds := rapid.OneOf(rapid.Int64Range(0, end), rapid.SampledFrom([]int64{
		0, 1, most - 2, most - 1, most, most + 1, end, end + 1,
	})).Draw(t, "timestamp")
	content = strings.Replace(content, "1703520000", strconv.FormatInt(seconds, 10), 1)
	years := rapid.SampledFrom([]string{"0000", "0001", "1677", "1678", "1969", "1970", "2262", "2263", "9999"})
	for _, year := range []string{"2024", "2025"} {
		for rest := content; ; {
			at := strings.Index(rest, `"`+year+"-")
			if at < 0 {
				break
			}
			rest = rest[at+5:]
			before := content[:len(content)-len(rest)-4]
			content = before + years.Draw(t, "year") + rest
		}
	}
	return []byte(content)
}
