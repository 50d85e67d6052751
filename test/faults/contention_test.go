package faults

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// contender takes a lock on its host again and again until a file is there, and makes a file while it has it. What it was told is on
// the disk that all hosts share: whom it met in there, and which files it made.
const contender = `
import os, sys, time
mount, outside, me = sys.argv[1:]
lock, inside = mount + "/lock", outside + "/inside"
told = open(outside + "/made." + me, "w", buffering=1)
n = 0
while not os.path.exists(outside + "/stop"):
    try:
        fd = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except OSError:
        time.sleep(0.02)
        continue
    os.close(fd)
    try:
        os.mkdir(inside)
        os.rmdir(inside)
    except OSError as error:
        open(outside + "/violated", "a").write(me + ": " + str(error) + "\n")
    n += 1
    try:
        os.mkdir(mount + "/made." + me + "." + str(n))
        print("made.%s.%d" % (me, n), file=told)
    except OSError:
        pass
    while True:
        try:
            os.unlink(lock)
            break
        except FileNotFoundError:
            break
        except OSError:
            time.sleep(0.02)
`

// contention is contenders on some hosts, and the directory where they write down what they were told.
type contention struct {
	c       *testcluster.Cluster
	outside string
	running []*hosts.Process
}

func startContention(t testing.TB, c *testcluster.Cluster, on ...*hosts.Host) *contention {
	n := &contention{c: c, outside: t.TempDir()}
	for _, h := range on {
		n.running = append(n.running, h.Start("python3", "-c", contender, c.Mount, n.outside, h.Name()))
	}
	return n
}

// made is what each has made, as it was told.
func (n *contention) made(t testing.TB) (names []string) {
	t.Helper()
	for _, p := range n.running {
		told, err := os.ReadFile(filepath.Join(n.outside, "made."+p.Host().Name()))
		if !errors.Is(err, fs.ErrNotExist) { // it has not begun
			require.NoError(t, err)
		}
		names = append(names, strings.Fields(string(told))...)
	}
	return names
}

// goesOn waits until they have had the lock some more times.
func (n *contention) goesOn(t testing.TB) {
	t.Helper()
	before := len(n.made(t))
	hosts.Eventually(t, "locks are taken again", func() (string, bool) {
		now := len(n.made(t))
		return strconv.Itoa(now), now > before+20
	})
}

// finish ends them, and requires that no two were in there at once, and that all is there that was acknowledged.
func (n *contention) finish(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(n.outside, "stop"), nil, 0o600))
	for _, p := range n.running {
		require.NoError(t, p.Wait(), p.Log())
	}
	require.NoFileExists(t, filepath.Join(n.outside, "violated"), "two were in there at once")
	present := testcluster.ListDir(t, n.c.Nodes[0], n.c.Mount)
	for _, name := range n.made(t) {
		require.Contains(t, present, name)
	}
}
