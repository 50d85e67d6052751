package fusefs

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// makeManyLocks makes locks in the root without a mount.
func makeManyLocks(t testing.TB, c *cluster, count int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range count {
		result := c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: namespace.RootIno, Name: fmt.Appendf(nil, "many-%05d.lock", i), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
			Says: storepb.NameSays_SAYS_LOCK,
		}}}})
		require.Equal(t, storepb.Code_OK, result.GetCode())
	}
	for c.ns.LastEvent() < uint64(count) { // some at a time
		c.index++
		soon := time.Now().Add(2 * time.Second).UnixNano()
		c.ns.Apply(ids.Index(c.index), &storepb.Command{Time: soon, Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
	}
}

// TestOpenControlFilesNeedLittleMemory has an ordinary user keep 1,000 control files open beside 10,000 locks, each read in part: they need
// little memory in the process that has both the mount and the state.
func TestOpenControlFilesNeedLittleMemory(t *testing.T) {
	const files, perFile = 1000, 16 << 10
	c := newCluster()
	dir, _ := mountFor(t, c)
	makeManyLocks(t, c, 10_000)
	for _, file := range []string{"locks", "locks.jsonl", "history"} {
		t.Run(file, func(t *testing.T) {
			before := heapBytes()
			reader := exec.Command("sh", "-c", `exec python3 "$@"`, "sh", "-c", `
import os, sys
files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(int(sys.argv[2]))]
read = {len(os.read(f, 5000)) for f in files}
print(*read, flush=True)
sys.stdin.read()`, dir+"/.lockfs/"+file, fmt.Sprint(files))
			reader.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			stop, err := reader.StdinPipe()
			require.NoError(t, err)
			output, err := reader.StdoutPipe()
			require.NoError(t, err)
			complaint := new(bytes.Buffer)
			reader.Stderr = complaint
			require.NoError(t, reader.Start())
			line, err := bufio.NewReader(output).ReadString('\n')
			if err != nil {
				_ = reader.Wait()
			}
			require.NoError(t, err, complaint)
			require.Equal(t, "5000", strings.TrimSpace(line))
			need := (int64(heapBytes()) - int64(before)) / files
			t.Logf("%d bytes for each open file", need)
			require.Less(t, need, int64(perFile))
			require.NoError(t, stop.Close())
			require.NoError(t, reader.Wait())
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestProgramsReadTheListOfLocks: in small and in large pieces, from the beginning again, at offsets, and with tools that read lines.
func TestProgramsReadTheListOfLocks(t *testing.T) {
	c := newCluster()
	dir, _ := mountFor(t, c)
	makeManyLocks(t, c, 500)
	for name, script := range map[string]string{
		"cat":           "cat .lockfs/locks | wc -l",
		"wc":            "wc -l <.lockfs/locks",
		"dd":            "dd if=.lockfs/locks bs=100 status=none | wc -l",
		"shell":         "n=0; while read -r line; do n=$((n+1)); done <.lockfs/locks; echo $n",
		"awk":           `awk '$1 == "held" {n++} END {print n}' .lockfs/locks`,
		"python's read": `python3 -c 'print(len(open(".lockfs/locks").read().splitlines()))'`,
		"jq":            "jq -r .path .lockfs/locks.jsonl | sort -u | wc -l",
		"grep":          "grep -c 'many-.....\\.lock\"' .lockfs/locks.jsonl",
		"split":         "split -n r/1/1 .lockfs/locks | wc -l",
		"readline": `python3 -c '
n = 0
with open(".lockfs/locks.jsonl") as f:
    while line := f.readline():
        n += line.endswith("}\n")
print(n)'`,
		"seek": `python3 -c '
f = open(".lockfs/locks", "rb", buffering=0)
first = f.read(1000)
f.seek(0)
again = f.read(1000)
assert again.split(b" ")[-1] == first.split(b" ")[-1]
print(len(f.readlines()) + again.count(b"\n"))'`,
		"pread": `python3 -c '
import os
f = os.open(".lockfs/locks", os.O_RDONLY)
whole = b""
while piece := os.pread(f, 3000, len(whole)):
    assert not whole or os.pread(f, 3000, len(whole)) == piece, "the same again"
    whole += piece
assert os.pread(f, 500, 20000) == whole[20000:20500], "an earlier offset"
assert os.pread(f, 500, 9000) == whole[9000:9500], "a still earlier one"
assert os.pread(f, 500, 25000) == whole[25000:25500], "a later one"
assert os.pread(f, 500, len(whole) + 1000) == b"", "behind the end"
print(whole.count(b"\n"))'`,
	} {
		require.Equal(t, "500", shell(t, dir, script), name)
	}
	require.Contains(t, shell(t, dir, "tail -n 1 .lockfs/locks"), "many-00499.lock")
	require.Contains(t, shell(t, dir, "head -n 1 .lockfs/locks"), "many-00000.lock")
}

// TestAReadFromTheBeginningShowsNewLocks through a file that is open already.
func TestAReadFromTheBeginningShowsNewLocks(t *testing.T) {
	c := newCluster()
	dir, _ := mountFor(t, c)
	makeManyLocks(t, c, 1)
	require.Equal(t, "1 2", shell(t, dir, `python3 -c '
f = open(".lockfs/locks")
before = len(f.readlines())
open("new.lock", "x").close()
f.seek(0)
print(before, len(f.readlines()))'`))
}
