package fusefs

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func TestRemovedWhileOpen(t *testing.T) {
	for how, remove := range map[string]func(t *testing.T, dir string){
		"unlink": func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "f"))) },
		"rename": func(t *testing.T, dir string) {
			writeFile(t, dir, "new", "new")
			require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "f")))
		},
	} {
		t.Run(how, func(t *testing.T) {
			c := newCluster()
			here, s := mountFor(t, c)
			there, theirs := mountFor(t, c)
			mine := openFile(t, writeFile(t, here, "f", "hello"), os.O_RDWR|os.O_APPEND)
			other := openFile(t, filepath.Join(there, "f"), os.O_RDWR)
			remove(t, here)

			_, err := mine.WriteString(" world")
			require.NoError(t, err, "a file removed by its own mount stays writable")
			requireContent(t, mine, "hello world")
			var st syscall.Stat_t
			require.NoError(t, syscall.Fstat(int(mine.Fd()), &st))
			require.Zero(t, st.Nlink)
			require.NoError(t, mine.Truncate(5))

			requireContent(t, other, "hello")
			_, err = other.WriteString("J")
			require.NoError(t, err, "data stays open on other hosts too")
			requireContent(t, mine, "Jello")
			eventually(t, "kept there too", func() bool { return theirs.pinned() == 1 })

			require.Equal(t, 1, s.pinned())
			require.NoError(t, mine.Close())
			eventually(t, "unpinned after the last close", func() bool { return s.pinned() == 0 })
			require.NoError(t, other.Truncate(4))
			requireContent(t, other, "Jell")
			require.NoError(t, other.Close())
			eventually(t, "unpinned after the last close there", func() bool { return theirs.pinned() == 0 })
		})
	}
}

func TestRemovedLockIsStaleForItsHolderElsewhere(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	held := openFile(t, filepath.Join(there, "a.lock"), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	require.NoError(t, os.Remove(filepath.Join(here, "a.lock")))
	_, err := held.WriteString("heartbeat")
	require.ErrorIs(t, err, syscall.ESTALE)
	require.ErrorIs(t, held.Truncate(0), syscall.ESTALE)
	requireContent(t, held, "")
}

// TestRemovedWhileOpeningElsewhere has another host remove a file each time that the kernel has looked it up to truncate it.
func TestRemovedWhileOpeningElsewhere(t *testing.T) {
	for name, content := range map[string]string{"data": "hello", "a.lock": ""} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			here, s := mountFor(t, c)
			other := c.open()
			path := filepath.Join(here, name)
			replace := func() {
				for _, op := range []*storepb.Op{
					{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: uint64(namespace.RootIno), Name: []byte(name)}}},
					{Op: &storepb.Op_Create{Create: &storepb.Create{Parent: uint64(namespace.RootIno), Name: []byte(name), Mode: syscall.S_IFREG | 0o644, Exclusive: true, Content: []byte(content)}}},
				} {
					_, _ = other.Mutate(t.Context(), &storepb.Caller{}, op)
				}
			}
			replace()
			s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
				if op.GetSetContent() != nil {
					replace()
				}
				return nil, false, nil
			})
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		})
	}
}

// TestWorkingDirectoryRemovedElsewhere: once the cluster has forgotten it, calls there say that there is nothing.
func TestWorkingDirectoryRemovedElsewhere(t *testing.T) {
	c := newCluster()
	here, s := mountFor(t, c)
	require.NoError(t, os.Mkdir(filepath.Join(here, "d"), 0o755))
	gone := lstat(t, filepath.Join(here, "d")).Ino
	// The script goes there by itself: this process serves the mount, and stands still while a child of it has not begun its program.
	script := exec.Command("sh", "-c", `cd "$1"; echo there; read go; exec 2>&1; cat x; mkdir z; mv a b; stat .; ls`, "sh", filepath.Join(here, "d"))
	stdout, err := script.StdoutPipe()
	require.NoError(t, err)
	begin, err := script.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, script.Start())
	said := bufio.NewReader(stdout)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "there\n", line)
	s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		return &storepb.Result{Code: storepb.Code_NOT_FOUND}, query.GetGetAttr().GetIno() == gone, nil
	})
	_, err = begin.Write([]byte("go\n"))
	require.NoError(t, err)
	output, err := io.ReadAll(said)
	require.NoError(t, err)
	_ = script.Wait()
	require.Equal(t, 5, strings.Count(string(output), "No such file or directory"), string(output))
}

func requireContent(t *testing.T, f *os.File, want string) {
	t.Helper()
	got := make([]byte, len(want)+1)
	n, _ := f.ReadAt(got, 0)
	require.Equal(t, want, string(got[:n]))
}

func TestOnlyOpenFilesArePinned(t *testing.T) {
	dir, s := mountFor(t, newCluster())
	path := writeFile(t, dir, "f", "")
	f := openFile(t, path, os.O_RDONLY)
	require.NoError(t, os.Link(path, path+"2"))
	require.NoError(t, os.Remove(path))
	require.Zero(t, s.pinned(), "it has another name")
	require.NoError(t, f.Close())
	require.NoError(t, os.Remove(path+"2"))
	require.NoError(t, os.Mkdir(path, 0o755))
	d := openFile(t, path, os.O_RDONLY)
	require.NoError(t, os.Remove(path))
	require.NoError(t, d.Close())
	eventually(t, "nothing is pinned", func() bool { return s.pinned() == 0 })
}

func TestDirectoryRemovedElsewhere(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	require.NoError(t, os.Mkdir(filepath.Join(here, "d"), 0o755))
	require.ErrorIs(t, os.WriteFile(filepath.Join(there, "d"), nil, 0o644), syscall.EISDIR)
	require.ErrorIs(t, syscall.Unlink(filepath.Join(here, "d")), syscall.EISDIR)
	writeFile(t, there, "d/f", "")
	require.ErrorIs(t, syscall.Rmdir(filepath.Join(here, "d")), syscall.ENOTEMPTY)
	d := openFile(t, filepath.Join(here, "d"), os.O_RDONLY)
	require.NoError(t, os.RemoveAll(filepath.Join(there, "d")))
	entries, err := d.ReadDir(-1)
	require.NoError(t, err)
	require.Empty(t, entries)
	_, err = os.Lstat(filepath.Join(here, "d"))
	require.ErrorIs(t, err, syscall.ENOENT)
}

func TestLink(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	path := writeFile(t, here, "f", "hello")
	require.NoError(t, os.Link(path, filepath.Join(here, "g")))
	for _, dir := range []string{here, there} {
		for _, name := range []string{"f", "g"} {
			st := lstat(t, filepath.Join(dir, name))
			require.EqualValues(t, 2, st.Nlink)
			require.Equal(t, lstat(t, path).Ino, st.Ino)
		}
	}
	require.ErrorIs(t, os.Link(path, filepath.Join(here, "g")), syscall.EEXIST)
	require.ErrorIs(t, os.Link(path+"?", filepath.Join(here, "h")), syscall.ENOENT)
	require.NoError(t, os.Remove(filepath.Join(there, "g")))
	require.EqualValues(t, 1, lstat(t, path).Nlink)
}

func TestRenameFlags(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	a, b := writeFile(t, dir, "a", "a"), writeFile(t, dir, "b", "b")
	rename := func(from, to string, flags uint) error {
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	}
	require.ErrorIs(t, rename(a, b, unix.RENAME_NOREPLACE), syscall.EEXIST)
	require.NoError(t, rename(a, b, unix.RENAME_EXCHANGE))
	require.Equal(t, "b", readFile(t, a))
	require.Equal(t, "a", readFile(t, b))
	require.ErrorIs(t, rename(a, b+"?", unix.RENAME_EXCHANGE), syscall.ENOENT)
	require.NoError(t, rename(a, a+"2", unix.RENAME_NOREPLACE))
	require.ErrorIs(t, rename(a+"2", b, unix.RENAME_WHITEOUT), syscall.EINVAL)
	require.NoError(t, rename(a+"2", b, 0))
	require.Equal(t, "b", readFile(t, b))
	require.Equal(t, "b", shell(t, dir, "ls"))

	require.NoError(t, os.Link(b, a))
	require.NoError(t, os.Rename(a, b), "two names of one inode")
	require.Equal(t, "a\nb", shell(t, dir, "ls"))
}

func TestRenameDirectory(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	shell(t, dir, "mkdir -p full/sub empty other; touch full/sub/f")
	rename := func(from, to string) error { return syscall.Rename(filepath.Join(dir, from), filepath.Join(dir, to)) }
	require.ErrorIs(t, rename("empty", "full"), syscall.ENOTEMPTY)
	require.NoError(t, rename("full", "empty"))
	require.NoError(t, rename("empty/sub", "other/sub"))
	require.Equal(t, "f", shell(t, dir, "ls other/sub"))
	require.ErrorIs(t, rename("other", "other/sub/x"), syscall.EINVAL)
}

func TestNodesThatAreNotFiles(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	require.Equal(t, "fifo", shell(t, dir, "mkfifo p; stat -c %F p"))
	require.Equal(t, "through", shell(t, dir, "echo through >p & cat p"))
	require.NoError(t, syscall.Mknod(filepath.Join(dir, "s"), syscall.S_IFSOCK|0o600, 0))
	require.ErrorIs(t, syscall.Mknod(filepath.Join(dir, "c"), syscall.S_IFCHR|0o600, 0x103), syscall.EPERM)
	require.ErrorIs(t, syscall.Mknod(filepath.Join(dir, "b"), syscall.S_IFBLK|0o600, 0x103), syscall.EPERM)
	require.NoError(t, syscall.Mknod(filepath.Join(dir, "f"), syscall.S_IFREG|0o640, 0))
	require.ErrorIs(t, syscall.Mknod(filepath.Join(dir, "f"), syscall.S_IFREG|0o640, 0), syscall.EEXIST)
	require.NoError(t, os.Symlink("not there", filepath.Join(dir, "l")))
	target, err := os.Readlink(filepath.Join(dir, "l"))
	require.NoError(t, err)
	require.Equal(t, "not there", target)
	require.ErrorIs(t, os.Symlink("again", filepath.Join(dir, "l")), syscall.EEXIST)
	_, err = os.Open(dir + "/" + longName(256))
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	require.NoError(t, os.Mkdir(dir+"/"+longName(255), 0o755))
}

func longName(length int) string {
	name := make([]byte, length)
	for i := range name {
		name[i] = 'n'
	}
	return string(name)
}
