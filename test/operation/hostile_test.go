package operation

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// A hostile lock is one that somebody might fall for who reads it or prints it.
type hostile struct {
	name    string // empty: a number
	content string
	format  string // valid or not; empty: none
}

const (
	largest   = 256 << 10
	halfTower = `{"lock_version":"v1","lock_name":"l","request_id":"r","actor":"a","intent":"i","intent_version":"1",` +
		`"host_id":"h","pid":1,"created_at":"2020-01-01T00:00:00Z","last_heartbeat_at":"2020-01-01T00:00:00Z"`
	eternalTower = halfTower + `,"ttl_seconds":1000000000`
)

func hostileLocks() []hostile {
	fill := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (largest-len(head)-len(tail))/len(unit)) + tail
	}
	binary := make([]byte, largest)
	for i := range binary {
		binary[i] = byte(i)
	}
	locks := []hostile{
		{content: ""},
		{content: "\n"},
		{content: string(binary)},
		{content: halfTower},
		{content: halfTower + "}", format: "tower"},
		{content: eternalTower[1:] + "}"},
		{content: eternalTower + `,"ttl_seconds":1}`, format: "tower"},
		{content: halfTower + `,"ttl_seconds":-1}`, format: "tower"},
		{content: halfTower + `,"ttl_seconds":1e99}`, format: "tower"},
		{content: fill(halfTower+`,"x":`, "[", "}")},
		{content: fill("", "\x00", "")},
		{content: fill("", "9", "")},
		{content: fill("{", "\xff", "}")},
		{content: fill("", `{"a":`, "")},
		{content: "pid=1\n"},
		{content: "pid=1\ntimestamp="},
		{content: "pid=1\ntimestamp=-1\n", format: "semaphore"},
		{content: "pid=1\ntimestamp=1\npid=2\n", format: "semaphore"},
		{content: "pid=1\ntimestamp=99999999999999999999\n", format: "semaphore"},
		{content: "-1\n"},
		{content: "0\n"},
		{content: "1 2\n"},
		{content: "99999999999999999999\n"},
		{content: `{"holder":"h","pid":-1,"hostname":"a","started_at":"2020-01-01T00:00:00Z"}`, format: "beads"},
		{content: `{"holder":"h","pid":1,"hostname":`},
		{content: `{"task_id":"t","worker":"w","acquired_at":"2020-01-01T00:00:00Z","expires_at":"then"}`, format: "swarm"},
		{content: `{"task_id":"t","worker":"w","acquired_at":"2020-01-01T00:00:00Z","note":"state=stale\npid=1"}`, format: "swarm"},
		{content: `{"task_id":"t","worker":"w\nstate=stale\npid=1","acquired_at":"2020-01-01T00:00:00Z"}`, format: "swarm"},
		{content: fill(`{"task_id":"t","acquired_at":"2020-01-01T00:00:00Z","worker":"`, `\u001b`, `"}`), format: "swarm"},
		{content: fill(eternalTower+`,"metadata":{"x":"`, "x", `"}}`), format: "tower"},
		{content: "pid=1\ntimestamp=33333333333\ntag=\x1b[2Jtag\n", format: "semaphore"},
		{content: fill("pid=1\ntimestamp=33333333333\ntag=", "t", "\n"), format: "semaphore"},
	}
	for i := range locks {
		locks[i].name = fmt.Sprint(i)
	}
	for _, name := range []string{
		"new\nline", "state=stale\nstate", "\x1b[2J", "\xff\xfe", "\x7f\t\r", `back\slash`, `"quoted"`, " ", "-rf", "*", "a\u202eb",
		strings.Repeat("x", 255),
	} {
		locks = append(locks, hostile{name: name, content: "held\n"})
	}
	return locks
}

// TestHostileLocks has locks that are malformed, half written, large or named strangely. They stay, and
// everything that is said about them is well formed.
func TestHostileLocks(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	disk := filepath.Join(c.Net.Dir(), "hostile")
	require.NoError(t, os.Mkdir(disk, 0o755))
	locks := hostileLocks()
	for _, l := range locks {
		require.NoError(t, os.WriteFile(filepath.Join(disk, l.name), []byte(l.content), 0o644))
	}
	a.Host.MustRun(t, "sh", "-ec", `cp -r "$1" "$2"; mkdir "$2/governed.locks"`, "sh", disk, c.Mount)
	a.Host.MustRun(t, "sh", "-ec", `cd "$1"; for lock in *; do [ ! -f "$lock" ] || cp -- "$lock" "../governed.locks/$lock"; done`,
		"sh", c.Path("hostile"))
	// A rule for semaphores does nothing to what is none.
	a.SetRule(t, "governed.locks/*", "--format", "semaphore", "--stale-after", "1s", "--on-stale", "remove")
	s := testcluster.StartShell(t, a.Host, c.Mount)
	s.Must("set -C; " + testcluster.SemaphoreContent + " > governed.locks/lock")
	c.AwaitGone(t, "governed.locks/lock", b.Host)
	for _, dir := range []string{"hostile", "governed.locks"} {
		b.Host.MustRun(t, "diff", "-r", disk, c.Path(dir))
	}

	for _, l := range locks {
		lock := "hostile/" + l.name
		facts, err := b.Host.Run("cat", c.Path(".lockfs/kv", lock))
		require.NoError(t, err, "%q", l.name)
		requirePrintable(t, facts)
		format := l.format
		if format == "" {
			format = "none"
		}
		for _, line := range []string{"format=" + format, "state=held"} {
			assert.Contains(t, "\n"+facts, "\n"+line+"\n", "%q", l.name)
		}
		for _, key := range []string{"pid", "timestamp", "tag", "host", "holder", "format", "state", "token"} {
			assert.LessOrEqual(t, strings.Count("\n"+facts, "\n"+key+"="), 1, "%q in %q", key, facts)
		}
		why, err := b.Host.Run("cat", c.Path(".lockfs/why", lock))
		require.NoError(t, err, "%q", l.name)
		requirePrintable(t, why)
		assert.Regexp(t, "state: held|lock: no: it was created exclusively", why)
	}
	require.Equal(t, "none", c.Xattr(t, b.Host, "hostile/0", "format"))
	require.Equal(t, "held", c.Xattr(t, b.Host, "hostile/0", "state"))
	list := b.Host.MustRun(t, "cat", c.Path(".lockfs/locks"))
	requirePrintable(t, list)
	assert.GreaterOrEqual(t, strings.Count(list, "governed.locks/"), 12, "all with a strange name: %s", list)
	for _, l := range locks {
		if l.format != "" {
			assert.Contains(t, list, "hostile/"+l.name+"\n")
		}
	}
	events, err := a.Lockfs("events", "--json")
	require.NoError(t, err)
	requirePrintable(t, events)
	events, err = a.Lockfs("events")
	require.NoError(t, err)
	requirePrintable(t, events)
	for _, e := range a.Events(t) {
		if e.Event == "lock_stale" || e.Event == "lock_removed" {
			assert.NotContains(t, e.Path, "hostile/", "%+v", e)
		}
	}
}

// requirePrintable requires lines of text without anything that a terminal could obey.
func requirePrintable(t testing.TB, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	require.False(t, bytes.ContainsFunc([]byte(text), func(r rune) bool {
		return r != '\n' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e')
	}), "%q", text)
}
