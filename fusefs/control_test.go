package fusefs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/formats"
	"lockfs/formats/semaphore"
	"lockfs/fusefs/control"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// describeContent makes a session say of a content what a cluster client says of it.
func describeContent(s *session) {
	s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if write := op.GetSetContent(); write != nil && formats.Detect(write.GetContent()) != formats.None {
			facts := formats.FactsOf(write.GetContent(), formats.Origin{Host: "host", Hostname: "host"})
			write.Facts = namespace.FactsMessage(facts)
			if lock, err := semaphore.Parse(write.GetContent()); err == nil {
				write.Facts.Tag = lock.Tag
			}
		}
		return nil, false, nil
	})
}

// mountWithFacts is mountFor with contents that are told of.
func mountWithFacts(t testing.TB) (dir string, c *cluster) {
	t.Helper()
	c = newCluster()
	dir, s := mountFor(t, c)
	describeContent(s)
	return dir, c
}

func TestControlDirectoryIsFoundAndNotListed(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	require.Empty(t, shell(t, dir, "ls -A"))
	require.Equal(t, "changes events force history kv locks locks.jsonl status wait why", shell(t, dir, "echo $(ls -A .lockfs)"))
	require.Equal(t, "555 0 0 directory", shell(t, dir, "stat -c '%a %u %g %F' .lockfs"))
	require.Equal(t, "444 0 0 regular empty file", shell(t, dir, "stat -c '%a %u %g %F' .lockfs/status"))
	require.Equal(t, shell(t, dir, "stat -c '%Z' .lockfs"), shell(t, dir, "stat -c '%Y' .lockfs/locks"))
	require.True(t, control.Has(ids.Inode(lstat(t, filepath.Join(dir, ".lockfs")).Ino)))
	require.ErrorIs(t, syscall.Access(filepath.Join(dir, ".lockfs/nothing"), 0), syscall.ENOENT)
	require.ErrorIs(t, syscall.Access(filepath.Join(dir, ".lockfs/why/.lockfs"), 0), syscall.ENOENT)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	require.ErrorIs(t, syscall.Access(filepath.Join(dir, "d/.lockfs"), 0), syscall.ENOENT, "only the root has it")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d/.lockfs"), 0o755))
}

var tenth = time.Unix(10, 0)

func TestNothingInTheControlDirectoryChanges(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	shell(t, dir, "mkdir d; echo hello >f; echo hello >d/f")
	at := func(name string) string { return filepath.Join(dir, name) }
	const inControl, kv, force = ".lockfs/new", ".lockfs/kv/f", ".lockfs/force/f"
	open := func(name string, flags int) error {
		fd, err := syscall.Open(at(name), flags, 0o644)
		if err == nil {
			_ = syscall.Close(fd)
		}
		return err
	}
	for what, err := range map[string]error{
		"create":                  open(inControl, os.O_CREATE|os.O_WRONLY),
		"create in why":           open(".lockfs/why/new", os.O_CREATE|os.O_WRONLY),
		"create in force":         open(".lockfs/force/new", os.O_CREATE|os.O_WRONLY),
		"write":                   open(kv, os.O_WRONLY),
		"write status":            open(".lockfs/status", os.O_RDWR),
		"cut off":                 open(kv, os.O_TRUNC),
		"write in force":          open(force, os.O_WRONLY),
		"read in force":           open(force, os.O_RDONLY),
		"truncate":                syscall.Truncate(at(force), 0),
		"mkdir":                   os.Mkdir(at(inControl), 0o755),
		"mkdir in force":          os.Mkdir(at(".lockfs/force/new"), 0o755),
		"mknod":                   syscall.Mknod(at(inControl), syscall.S_IFIFO|0o644, 0),
		"symlink":                 os.Symlink("x", at(inControl)),
		"link into it":            os.Link(at("f"), at(inControl)),
		"link out of it":          os.Link(at(kv), at("new")),
		"link over there":         os.Link(at(force), at(".lockfs/force/new")),
		"rename into it":          syscall.Rename(at("f"), at(".lockfs/force/new")),
		"rename out of it":        syscall.Rename(at(force), at("new")),
		"rename in it":            syscall.Rename(at(force), at(".lockfs/force/d/new")),
		"rename the directory":    syscall.Rename(at(".lockfs"), at("new")),
		"rename onto it":          syscall.Rename(at("d"), at(".lockfs")),
		"remove the directory":    syscall.Rmdir(at(".lockfs")),
		"remove a file":           syscall.Unlink(at(".lockfs/status")),
		"remove in why":           syscall.Unlink(at(".lockfs/why/f")),
		"remove in kv":            syscall.Unlink(at(kv)),
		"remove a directory":      syscall.Rmdir(at(".lockfs/force")),
		"chmod":                   os.Chmod(at(".lockfs"), 0o777),
		"chmod in force":          os.Chmod(at(force), 0o777),
		"chown":                   os.Lchown(at(kv), 1, 1),
		"times":                   os.Chtimes(at(force), tenth, tenth),
		"setxattr":                unix.Setxattr(at(kv), "user.x", nil, 0),
		"removexattr":             unix.Removexattr(at(force), "user.x"),
		"fchmodat of a directory": os.Chmod(at(".lockfs/why/d"), 0o777),
	} {
		require.ErrorIs(t, err, syscall.EPERM, what)
	}
	require.Equal(t, "d f hello hello", shell(t, dir, "echo $(ls) $(cat f d/f)"))

	// The kernel takes some refusals for the whole mount's: everything must still work outside.
	require.NoError(t, unix.Setxattr(at("f"), "user.x", nil, 0))
	require.Equal(t, "hello world", shell(t, dir, "cp .lockfs/kv/f copy; echo hello world >copy; sync copy; cat copy; rm copy"))
	size, err := unix.Listxattr(at(kv), nil)
	require.NoError(t, err)
	require.Zero(t, size)
	_, err = unix.Getxattr(at(kv), "user.x", nil)
	require.ErrorIs(t, err, syscall.ENODATA)
}

func TestStatusFile(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	lines := strings.Split(shell(t, dir, "cat .lockfs/status"), "\n")
	require.Len(t, lines, 5)
	require.Equal(t, []string{"host=host", "session=0000000000000001", "leader=leader", "clock_offset=-0.001500000"}, lines[:4])
	require.Regexp(t, `^cluster_time=20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$`, lines[4])
}
