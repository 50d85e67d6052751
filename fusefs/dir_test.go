package fusefs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func TestListingWhileEntriesComeAndGo(t *testing.T) {
	c := newCluster()
	here, s := mountFor(t, c)
	there, _ := mountFor(t, c)
	const entries, batch = 20_000, 200
	for i := range entries {
		result, err := s.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: namespace.RootIno, Name: fmt.Append(nil, "stay", i), Mode: syscall.S_IFREG,
		}}})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
	}
	d := openFile(t, here, os.O_RDONLY)
	seen := make(map[string]int)
	for n := 0; ; n++ {
		names, err := d.Readdirnames(batch)
		for _, name := range names {
			seen[name]++
		}
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if n >= entries/batch {
			continue // else the listing would never reach its end
		}
		writeFile(t, there, fmt.Sprint("come", n), "")
		if n%2 == 1 {
			require.NoError(t, os.Remove(filepath.Join(there, fmt.Sprint("come", n-1))))
		}
	}
	stayed := 0
	for name, times := range seen {
		if times != 1 {
			require.Equal(t, 1, times, name)
		}
		if strings.HasPrefix(name, "stay") {
			stayed++
		}
	}
	require.Equal(t, entries, stayed)
}

func TestListingShowsWhatWasCommittedBefore(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	d := openFile(t, here, os.O_RDONLY)
	writeFile(t, there, "after-opendir", "")
	names, err := d.Readdirnames(-1)
	require.NoError(t, err)
	require.Equal(t, []string{"after-opendir"}, names)

	writeFile(t, there, "after-rewind", "")
	_, err = d.Seek(0, io.SeekStart)
	require.NoError(t, err)
	names, err = d.Readdirnames(-1)
	require.NoError(t, err)
	require.Equal(t, []string{"after-opendir", "after-rewind"}, names)
	require.NoError(t, d.Sync())
}

func TestListingHasTypesNumbersAndDots(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	shell(t, dir, "mkdir d d/sub; touch d/f; ln -s x d/l")
	require.Equal(t, []string{".", "..", "sub", "f", "l"}, strings.Fields(shell(t, dir, "ls -aU d")))
	entries, err := os.ReadDir(filepath.Join(dir, "d"))
	require.NoError(t, err)
	types := make(map[string]os.FileMode)
	for _, entry := range entries {
		types[entry.Name()] = entry.Type()
	}
	require.Equal(t, map[string]os.FileMode{"sub": os.ModeDir, "f": 0, "l": os.ModeSymlink}, types)
	require.Equal(t, shell(t, dir, "stat -c %i d/f"), shell(t, dir, "ls -i d/f | cut -d' ' -f1"))
}

func TestSeekInListing(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	shell(t, dir, "touch a b c d")
	// seekdir goes back to the place that telldir told, over names that are read again.
	require.Equal(t, "abcd cd", shell(t, dir, `exec python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("len", ctypes.c_ushort), ("type", ctypes.c_ubyte), ("name", ctypes.c_char * 256)]
libc.opendir.restype = ctypes.c_void_p
libc.readdir.restype = ctypes.POINTER(dirent)
libc.readdir.argtypes = libc.telldir.argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
d = libc.opendir(b".")
def rest():
    out = ""
    while True:
        e = libc.readdir(d)
        if not e: return out
        if not e.contents.name.startswith(b"."):
            out += e.contents.name.decode()
            if out.endswith("b"): global place; place = libc.telldir(d)
everything = rest()
libc.seekdir(d, place)
print(everything, rest())
END`))
}
