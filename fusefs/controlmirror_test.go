package fusefs

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/formats"
	"lockfs/formats/semaphore"
	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

const (
	swarmLock = `{"task_id":"t","worker":"worker 1",` +
		`"acquired_at":"2100-01-01T00:00:00Z","expires_at":"2100-01-02T00:00:00Z"}`
	beadsLock = `{"holder":"vc","pid":4711,"hostname":"host","started_at":"2020-01-01T00:00:00Z"}`
)

func keyValuesOf(t testing.TB, dir, lock string) map[string]string {
	t.Helper()
	text := readFile(t, filepath.Join(dir, ".lockfs/kv", lock))
	_, err := semaphore.Parse([]byte(text))
	require.NoError(t, err, "%q", text)
	return fieldsOf(t, text, "=")
}

func whyOf(t testing.TB, dir, lock string) map[string]string {
	t.Helper()
	return fieldsOf(t, readFile(t, filepath.Join(dir, ".lockfs/why", lock)), ": ")
}

func fieldsOf(t testing.TB, text, separator string) map[string]string {
	t.Helper()
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), separator)
		require.True(t, found, "%q", line)
		require.NotContains(t, fields, key, "%q", text)
		fields[key] = value
	}
	return fields
}

func TestKeyValues(t *testing.T) {
	dir, _ := mountWithFacts(t)
	shell(t, dir, "mkdir lock.d; ln -s 17 link; mkfifo fifo")
	writeFile(t, dir, "plain", "hello")
	writeFile(t, dir, "semaphore", "pid=12\ntimestamp=4102444800\ntag=deploy v1\n")
	writeFile(t, dir, "swarm", swarmLock)
	writeFile(t, dir, "pid", "4711\n")
	for lock, want := range map[string]map[string]string{
		"lock.d":    {"pid": "1", "format": "none"},
		"link":      {"pid": "1", "format": "none"},
		"fifo":      {"pid": "1", "format": "none"},
		"plain":     {"pid": "1", "format": "none"},
		"semaphore": {"pid": "12", "timestamp": "4102444800", "tag": "deploy v1", "holder": "12", "format": "semaphore"},
		"swarm":     {"pid": "1", "timestamp": "4102444800", "holder": "worker 1", "format": "swarm"},
		"pid":       {"pid": "4711", "holder": "4711", "format": "pid"},
	} {
		got := keyValuesOf(t, dir, lock)
		if want["timestamp"] == "" {
			taken, err := strconv.ParseInt(got["timestamp"], 10, 64)
			require.NoError(t, err)
			require.InDelta(t, time.Now().Unix(), taken, 60)
			want["timestamp"] = got["timestamp"]
		}
		want["host"] = "host"
		if lock != "plain" { // which is data
			require.NotEmpty(t, got["token"])
			want["state"], want["token"] = "held", got["token"]
		}
		require.Equal(t, want, got, lock)
	}
	text := readFile(t, filepath.Join(dir, ".lockfs/kv/semaphore"))
	require.Regexp(t, `^pid=.*\ntimestamp=.*\ntag=.*\nhost=.*\nholder=.*\nformat=.*\nstate=.*\ntoken=.*\n$`, text)
}

func TestWhy(t *testing.T) {
	dir, _ := mountWithFacts(t)
	shell(t, dir, "mkdir -p a/b/lock.d; chown 7:8 a/b/lock.d; chmod 1755 a/b/lock.d")
	shell(t, dir, "echo x >plain; touch -d 2020-01-01T00:00:00Z plain")
	writeFile(t, dir, "semaphore", "pid=12\ntimestamp=4102444800\n")
	writeFile(t, dir, "beads", beadsLock)

	fields := whyOf(t, dir, "a/b/lock.d")
	for key, want := range map[string]string{
		"path": "a/b/lock.d", "state": "held", "lives": "until a program removes it", "may be removed by": "anyone",
		"format": "none", "guard": "anyone", "on_stale": "keep", "type": "directory", "mode": "1755", "uid": "7",
		"gid": "8", "links": "2",
		"inode": fmt.Sprint(lstat(t, filepath.Join(dir, "a/b/lock.d")).Ino),
	} {
		require.Equal(t, want, fields[key], key)
	}
	require.NotContains(t, fields, "holder")
	require.NotContains(t, fields, "expires")

	fields = whyOf(t, dir, "plain")
	require.Regexp(t, `^2020-01-01T00:00:00\.000000000Z \(\d+d(\d+h)? ago\)$`, fields["renewed"])

	fields = whyOf(t, dir, "semaphore")
	require.Regexp(t, `^2100-01-01T01:00:00\.999999999Z \(in \d+d(\d+h)?\)$`, fields["expires"])
	require.Regexp(t, `^until 2100-01-01T01:00:00\.9+Z .* if it is not renewed; then it stays until a program removes it$`,
		fields["lives"])
	require.Equal(t, "programs on host host, or anyone with `lockfs rm --force`", fields["may be removed by"])

	require.Equal(t, "until a program removes it: its process could not be identified", whyOf(t, dir, "beads")["lives"])
}

func TestMirrorShowsTheTree(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	require.Equal(t, "directory", shell(t, dir, "stat -c %F .lockfs/why"), "also when there is nothing")
	shell(t, dir, "mkdir -p full/sub full/empty; touch full/sub/f; ln -s nowhere full/l")
	shell(t, dir, "chmod 1775 full; chown 3:4 full; chmod 640 full/sub/f")
	for _, tree := range []string{"why", "kv"} {
		tree = ".lockfs/" + tree
		require.Equal(t, "full full/empty full/l full/sub full/sub/f", shell(t, dir, "cd "+tree+"; echo $(find * | sort)"))
		require.Equal(t, "full/empty full/l full/sub/f", shell(t, dir, "cd "+tree+"; echo $(find * -type f | sort)"))
		require.Equal(t, "directory 1555 3 4", shell(t, dir, "stat -c '%F %a %u %g' "+tree+"/full"))
		require.Equal(t, "440 0 0", shell(t, dir, "stat -c '%a %u %g' "+tree+"/full/sub/f"))
		require.Equal(t, shell(t, dir, "stat -c %y full/l"), shell(t, dir, "stat -c %y "+tree+"/full/l"))
	}
	for what, want := range map[string]string{
		"full": "directory 1775 3 4", "full/l": "symbolic link 777 0 0", "full/sub/f": "regular empty file 640 0 0",
	} {
		require.Equal(t, want, shell(t, dir, "stat -c '%F %a %u %g' .lockfs/force/"+what))
	}
	require.Equal(t, "nowhere", shell(t, dir, "readlink .lockfs/force/full/l"))

	shell(t, dir, "cat .lockfs/why/full/empty; touch full/empty/f; cat .lockfs/why/full/empty/f")
	require.Equal(t, "f", shell(t, dir, "ls .lockfs/why/full/empty"))
	shell(t, dir, "rm full/empty/f; cat .lockfs/why/full/empty")
	require.Equal(t, "f", shell(t, filepath.Join(dir, ".lockfs/kv/full/sub"), "mv ../../../../full/sub ../../../../moved; ls"),
		"a directory that is moved stays the same")
	_, err := os.Lstat(filepath.Join(dir, ".lockfs/why", longName(256)))
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	_, err = os.ReadFile(filepath.Join(dir, ".lockfs/why/full/l/x"))
	require.ErrorIs(t, err, syscall.ENOTDIR)
}

func TestMirrorKeepsPermissions(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	shell(t, dir, "mkdir -m 700 closed lock.d; mkdir -m 711 blind; touch closed/f blind/f open private; chmod 600 private")
	for _, tree := range []string{"why", "kv"} {
		for name, readable := range map[string]bool{
			"closed/f": false, "private": false, "lock.d": false, "blind/f": true, "open": true,
		} {
			output, err := runAs(t, nobody, dir, "cat", filepath.Join(".lockfs", tree, name))
			if readable {
				require.NoError(t, err, output)
			} else {
				require.Error(t, err, name)
				require.Contains(t, output, "Permission denied")
			}
		}
		_, err := runAs(t, nobody, dir, "ls", filepath.Join(".lockfs", tree, "blind"))
		require.Error(t, err)
	}
	shell(t, dir, "chmod 700 .")
	output, err := runAs(t, nobody, "/", "cat", filepath.Join(dir, ".lockfs/kv/open"))
	require.Error(t, err)
	require.Contains(t, output, "Permission denied")
}

func TestSnapshotsStay(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	path := writeFile(t, dir, "f", "")
	why := openFile(t, filepath.Join(dir, ".lockfs/why/f"), os.O_RDONLY)
	require.NoError(t, os.Remove(path))
	info, err := why.Stat()
	require.NoError(t, err, "of what is gone")
	require.True(t, info.Mode().IsRegular())
	text := make([]byte, 20)
	n, err := why.ReadAt(text, 6)
	require.NoError(t, err)
	require.Equal(t, "f\nlock: no: it is da", string(text[:n]))
	_, err = os.Stat(filepath.Join(dir, ".lockfs/why/f"))
	require.ErrorIs(t, err, syscall.ENOENT)
}

// TestReadingInTheMirrorIsAnObservation removes what somebody saw there, when it is another lock already.
func TestReadingInTheMirrorIsAnObservation(t *testing.T) {
	c := newCluster()
	there, s := mountFor(t, c)
	describeContent(s)
	here := t.TempDir()
	self := []lookguard.Process{{PID: 1, Start: 1}}
	mountAt(t, here, c.open(), Options{Family: func(uint32) iter.Seq[lookguard.Process] { return slices.Values(self) }})
	lock := filepath.Join(here, "f")
	for what, observe := range map[string]func(){
		"why": func() { whyOf(t, here, "f") },
		"kv":  func() { keyValuesOf(t, here, "f") },
		"xattr": func() {
			_, err := unix.Getxattr(lock, "user.lockfs.state", make([]byte, 20))
			require.NoError(t, err)
		},
	} {
		writeFile(t, there, "f", strings.Replace(swarmLock, "worker 1", what, 1))
		observe()
		require.NoError(t, os.Remove(filepath.Join(there, "f")))
		writeFile(t, there, "f", strings.Replace(swarmLock, "worker 1", what+" again", 1))
		require.ErrorIs(t, os.Remove(lock), syscall.ENOENT, what)
		observe()
		require.NoError(t, os.Remove(lock), what)
	}
}

func TestForce(t *testing.T) {
	dir, c := mountWithFacts(t)
	shell(t, dir, "mkdir -m 1777 sticky; mkdir -m 755 closed; mkdir sticky/empty; ln -s x sticky/l")
	for _, name := range []string{"f", "sticky/f", "closed/f"} {
		writeFile(t, dir, name, "pid=12\ntimestamp=4102444800\n")
	}
	inForce := func(name string) string { return filepath.Join(".lockfs/force", name) }
	_, err := runAs(t, nobody, dir, "rm", "-f", inForce("sticky/f"))
	require.Error(t, err, "it is another user's, in a sticky directory")
	_, err = runAs(t, nobody, dir, "rm", "-f", inForce("closed/f"))
	require.Error(t, err)
	_, err = runAs(t, nobody, dir, "rmdir", inForce("sticky/empty"))
	require.Error(t, err)
	require.Equal(t, "closed f sticky", shell(t, dir, "echo $(ls)"))

	there := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(there), 0o755))
	mountAt(t, there, c.openOn("elsewhere"), Options{})
	require.ErrorIs(t, os.Remove(filepath.Join(there, "f")), syscall.EBUSY, "it is held over here")
	held := openFile(t, filepath.Join(there, "f"), os.O_RDONLY)
	shell(t, there, "rm .lockfs/force/f")
	require.NoFileExists(t, filepath.Join(dir, "f"))
	requireContent(t, held, "pid=12\ntimestamp=4102444800\n")

	require.ErrorIs(t, syscall.Rmdir(filepath.Join(there, ".lockfs/force/sticky")), syscall.ENOTEMPTY)
	require.ErrorIs(t, syscall.Unlink(filepath.Join(there, ".lockfs/force/nothing")), syscall.ENOENT)
	require.ErrorIs(t, syscall.Unlink(filepath.Join(there, ".lockfs/force/closed")), syscall.EISDIR)
	_, err = runAs(t, nobody, there, "touch", "sticky/mine")
	require.NoError(t, err)
	output, err := runAs(t, nobody, there, "rm", inForce("sticky/mine"))
	require.NoError(t, err, output)
	shell(t, there, "rm -r .lockfs/force/sticky .lockfs/force/closed; ! rmdir .lockfs/force 2>&1")
	require.Empty(t, shell(t, dir, "ls -A"))
}

func TestListOfLocks(t *testing.T) {
	dir, c := mountWithFacts(t)
	require.Empty(t, readFile(t, filepath.Join(dir, ".lockfs/locks")))
	writeFile(t, dir, "a lock", swarmLock)
	shell(t, dir, "mkdir d; mkdir d/lock")
	require.Equal(t, "swarm worker\\x201 host - <a lock>\nnone - host - <d/lock>", shell(t, dir, `
		while read -r state format token holder host pid age path; do
			[ $state = held ] && [ "$token" -gt 0 ] && [ "$age" -ge 0 ] &&
				echo $format $(echo "$holder" | tr -d '"') $host $pid "<$path>"
		done <.lockfs/locks`))

	s := c.open()
	for i := range 2500 {
		create := &storepb.Create{
			Parent: namespace.RootIno, Name: fmt.Appendf(nil, "many%d", i), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
		}
		result, err := s.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: create}})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
	}
	require.Equal(t, "2502", shell(t, dir, "sort -u .lockfs/locks | wc -l"))
}

// TestHostileNamesAndContents has names and contents that pretend to be lines or fields of their own.
func TestHostileNamesAndContents(t *testing.T) {
	dir, _ := mountWithFacts(t)
	names := []string{
		"new\nline", "x\nstate=stale\npid=7", "a\nstate: stale", "\x1b[2J", "\xff\xfe", "\x7f\t\r", `back\slash`, `"quoted"`, " ", " f ",
		"-", "a\u202eb", "held none 1 - - - 0 victim", "\u0085\u2028", strings.Repeat("\n", 255), "k=v", "k: v",
	}
	contents := []string{
		"", "\n", `{"holder":"h\nstate: stale","pid":1,"hostname":"host\nhost","started_at":"2020-01-01T00:00:00Z"}`,
		`{"task_id":"t","worker":"w\nstate=stale\npid=7","acquired_at":"0001-01-01T00:00:00Z"}`,
		`{"task_id":"t","worker":"w x - \u001b[2J","acquired_at":"9999-01-01T00:00:00Z"}`,
		"pid=1\ntimestamp=4102444800\ntag=\x1b[2J\u0085\u202e\n", "pid=1\ntimestamp=1\ntag=\xff\n", "pid=1\ntimestamp=0\ntag=\"t\"\x7f ",
	}
	for i, content := range contents {
		names = append(names, fmt.Sprint(i))
		f := openFile(t, filepath.Join(dir, fmt.Sprint(i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		_, err := f.WriteString(content)
		require.NoError(t, err)
	}
	for _, name := range names[:len(names)-len(contents)] {
		writeFile(t, dir, name, swarmLock)
	}
	for _, name := range names {
		for _, tree := range []string{"why", "kv"} {
			requirePrintable(t, readFile(t, filepath.Join(dir, ".lockfs", tree, name)))
		}
		fields := keyValuesOf(t, dir, name)
		assert.Contains(t, []string{"held", "stale", "unreachable"}, fields["state"], "%q", name)
		assert.NotEqual(t, "7", fields["pid"])
		why := whyOf(t, dir, name)
		assert.Equal(t, fields["state"], why["state"])
		assert.Equal(t, name, unquoted(t, why["path"]))
	}
	list := readFile(t, filepath.Join(dir, ".lockfs/locks"))
	requirePrintable(t, list)
	var listed []string
	for line := range strings.Lines(list) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 8)
		require.Len(t, fields, 8, "%q", line)
		require.NotContains(t, fields, "")
		_, err := formats.ParseFormat(fields[1])
		require.NoError(t, err, "%q", line)
		for _, i := range []int{2, 6} {
			_, err := strconv.ParseUint(fields[i], 10, 64)
			require.NoError(t, err, "%q", line)
		}
		listed = append(listed, unquoted(t, fields[7]))
	}
	require.ElementsMatch(t, names, listed)
}

func requirePrintable(t testing.TB, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	for line := range strings.Lines(text) {
		require.True(t, strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) < 0, "%q", line)
	}
}

func unquoted(t testing.TB, text string) string {
	t.Helper()
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	name, err := strconv.Unquote(text)
	require.NoError(t, err, text)
	return name
}
