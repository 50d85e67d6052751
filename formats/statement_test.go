package formats_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/formats"
	"lockfs/test/fuzzing"
)

// on is a writer on a host whose names are these, whose family is process 1234.
func on(hosts ...string) formats.Writer {
	w := kinOf(1234, 1)
	w.Hosts = hosts
	return w
}

// TestShapesOfAStatement are those in which a pid is all that a lock says, each with a program that writes it.
func TestShapesOfAStatement(t *testing.T) {
	const bare, conditional = false, true
	for _, shape := range []struct {
		by, name, content string
		conditional       bool
	}{
		{"most programs", "run.pid", "1234\n", bare},
		{"os.open(O_EXCL) in Python", "job.lock", "1234", bare},
		{"shadow-utils", "passwd.lock", "1234\x00", bare},
		{"C programs that write a fixed buffer", "x", "\x001234\x00\x00\x00", bare},
		{"Twisted's FilesystemLock, as the target of a link", "lock", "1234", bare},
		{"lockfile-create, UUCP", "LCK..ttyS0", "      1234\n", bare},
		{"PostgreSQL", "postmaster.pid", "1234\n/var/lib/pg\n1795341600\n5432\n", bare},
		{"a daemon that notes its port too", "a.b.pid", " 1234 \nport 80\n", bare},
		{"the first process of a container", "lock", "1\n", conditional},
		{"programs that pad with zeros", "lock", "00001234", conditional},
		{"programs that pad with zeros", "lock", "0000001234\n", conditional},
		{"Mercurial, the target of a link", "wlock", "web1:1234", conditional},
		{"Mercurial on Linux", "wlock", "web1/f0000083:1234", conditional},
		{"Emacs", ".#file", "alice@web1.1234", conditional},
		{"Emacs", ".#file", "alice@web1.1234:1795341600", conditional},
		{"Emacs, with a full host name", ".#file", "alice@web1.example.com.1234:1795341600", conditional},
		{"Chromium, the target of a link", "SingletonLock", "web1-1234", conditional},
		{"Chromium on a host with a number", "SingletonLock", "web-2-1234", conditional},
		{"git gc", "gc.pid", "1234 web1", conditional},
		{"SoftFileLock of filelock", "x.lock", "1234\nweb1\n", conditional},
		{"scripts", "x.lock", "web1 1234\n", conditional},
		{"scripts", "x.lock", "WEB1.example.com\t 1234\n", conditional},
		{"scripts", "x.lock", "1234 web1.example.com", conditional},
		{"minicom, HoneyDanBer UUCP", "LCK..ttyS0", "      1234 minicom root\n", conditional},
		{"pppd", "LCK..ttyS0", "      1234 pppd\n", conditional},
		{"programs that note how long they may hold it", "x.lock", "1234\n300\n", conditional},
		{"shell scripts", "x.lock", "pid=1234\n", conditional},
		{"JSON", "x.lock", `{"pid":1234}`, conditional},
		{"JSON", "x.lock", "{\n  \"pid\": 1234\n}\n", conditional},
	} {
		says, found := formats.StatementIn(shape.name, []byte(shape.content), on("web1", "web-2", "web1.example.com"))
		require.True(t, found, "%s: %q", shape.by, shape.content)
		wanted := 1234
		if shape.content == "1\n" {
			wanted = 1
		}
		require.Equal(t, wanted, says.PID, shape.content)
		require.Equal(t, shape.conditional, says.Conditional, "%s: %q", shape.by, shape.content)
		facts := says.FactsOf(formats.Origin{Host: "node"})
		require.Equal(t, formats.Facts{
			Format: formats.PID, Holder: facts.Holder, Host: "node", PID: wanted, Guard: formats.GuardHost, OnStale: formats.Remove,
			Conditional: says.Conditional,
		}, facts)
		_, found = formats.StatementIn(shape.name, []byte(shape.content), formats.Writer{Hosts: []string{"web1", "web-2"}})
		require.False(t, found, "a number that is no pid of the writer's family: %q", shape.content)
	}
}

// TestContentsWithAnotherStatement are of no format, whatever pids and hosts are in them.
func TestContentsWithAnotherStatement(t *testing.T) {
	for _, content := range []string{
		"", "\x00", "web1", "web1\n", "1235", "4194305", "1795341600", "-1234", "+1234", "1234.5", "0x4d2", "12\x0034",
		"web1 1234 started", "started web1 1234", "2026-11-22T10:00:00Z web1 app[1234]: started", "web1 1234\nweb2 77\n", "web1 1234\nweb1 1234\n",
		"other 1234", "other-1234", "1234 other", "web10 1234", "xweb1 1234", "web1x1234", "web1/1234", "web1/a b:1234", "web1::1234", "web1 - 1234",
		"web1.txt.1234", "alice bob@web1.1234", "@web1.1234", "web1:1234:x", "web1:1234:", "000000001234", "00001235", "0",
		"      1234 minicom root tty\n", "     1234 minicom root\n", "      1234minicom", "1234 minicom root\n", "      1234 a b\nc\n",
		"1234\n300\n400\n", "300\n1234\n", "1234\nx\n", "1234\n-1\n", "pid=1235", "pid=1234\ntag=x", "pid = 1234", "ppid=1234",
		`{"pid":1235}`, `{"pid":"1234"}`, `{"pid":1234,"port":80}`, `[1234]`, `{"ppid":1234}`, `{"pid":1234`, strings.Repeat(" ", 600) + "web1:1234",
	} {
		_, found := formats.StatementIn("x.lock", []byte(content), on("web1"))
		require.False(t, found, "%q", content)
	}
	_, found := formats.StatementIn("pid", []byte("1234\nport 80\n"), on("web1"))
	require.False(t, found, "the first line alone counts in *.pid files only")
	for _, host := range []string{"a", "12", "1.2"} {
		_, found := formats.StatementIn("x", []byte(host+" 1234"), on(host))
		require.False(t, found, "%q is no name of a host", host)
	}
}

// TestPaddingDoesNotMatter around any statement, but for the ten columns of UUCP.
func TestPaddingDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		around := rapid.StringMatching(`[ \t\r\n\x00]{0,20}`)
		statement := rapid.SampledFrom([]string{
			"1234", "00001234", "web1:1234", "root@web1.1234:17", "web1/ns:1234", "1234 web1", "1234\n300", "pid=1234", `{"pid":1234}`,
		}).Draw(t, "statement")
		says, found := formats.StatementIn("lock", []byte(around.Draw(t, "before")+statement+around.Draw(t, "after")), on("web1"))
		require.True(t, found)
		require.Equal(t, 1234, says.PID)
	})
}

func FuzzStatementIn(f *testing.F) {
	for _, content := range []string{"1234", "web1/f0:1234:1", "a@web1.example.com.1234", "      1234 a b", "1234\n1", "pid=1234", `{"pid":1234}`, "01234"} {
		f.Add("x.pid", []byte(content))
	}
	fuzzing.Run(f, func(t *testing.T, name string, content []byte) {
		says, found := formats.StatementIn(name, content, on("web1.example.com", "node-a"))
		require.Equal(t, found, says.PID == 1234 || says.PID == 1)
	})
}
