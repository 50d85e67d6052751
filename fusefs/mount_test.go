package fusefs

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// runChild mounts dir, says so, and serves it until somebody unmounts it or its standard input ends.
func runChild(role, dir string) int {
	if role == "maker" {
		return makeAndExecute(dir)
	}
	if role == "user" {
		if err := syscall.Setgid(nobody); err != nil {
			panic(err)
		}
		if err := syscall.Setuid(nobody); err != nil {
			panic(err)
		}
	}
	m, err := Mount(dir, newCluster().open(), Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error() + "\n")
		return 1
	}
	_, _ = os.Stdout.WriteString("ready\n")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		if err := m.Unmount(); err != nil {
			_, _ = os.Stdout.WriteString(err.Error() + "\n")
		}
	}()
	m.Wait()
	return 0
}

// makeAndExecute makes a file, and executes a program, with which it is closed, when it is told to.
func makeAndExecute(path string) int {
	if _, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644); err != nil {
		_, _ = os.Stdout.WriteString(err.Error() + "\n")
		return 1
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	panic(syscall.Exec("/bin/true", []string{"true"}, nil))
}

// child is a process of its own that serves a mount, or makes a file in one.
type child struct {
	*exec.Cmd
	stdin io.Closer
}

func startChild(t *testing.T, role, dir string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for strings.Contains(mountTable(t), " "+dir+" ") {
			require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH))
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return &child{cmd, stdin}
}

func TestMountTable(t *testing.T) {
	dir := t.TempDir()
	mountAt(t, dir, newCluster().open(), Options{FsName: "lockfs@here"})
	mounts, err := os.ReadFile("/proc/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[1] == dir {
			require.Equal(t, "lockfs@here", fields[0])
			require.Equal(t, "fuse.lockfs", fields[2])
			require.Contains(t, fields[3], "default_permissions")
			require.Contains(t, fields[3], "allow_other")
			return
		}
	}
	require.Fail(t, "the mount is not in /proc/mounts", string(mounts))
}

func TestMountRefuses(t *testing.T) {
	c := newCluster()
	dir := t.TempDir()
	file := writeFile(t, dir, "file", "")
	_, err := Mount(file, c.open(), Options{})
	require.ErrorIs(t, err, syscall.ENOTDIR)
	_, err = Mount(filepath.Join(dir, "missing"), c.open(), Options{})
	require.ErrorIs(t, err, syscall.ENOENT)

	mounted, _ := mountFor(t, c)
	_, err = Mount(mounted, c.open(), Options{})
	require.ErrorContains(t, err, "lockfs is mounted there already")
	require.NoError(t, os.Mkdir(filepath.Join(mounted, "sub"), 0o755))
}

func TestStaleMountIsCleanedUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with blank")
	require.NoError(t, os.Mkdir(dir, 0o755))
	first := startChild(t, "root", dir)
	_, err := Mount(dir, newCluster().open(), Options{})
	require.ErrorContains(t, err, "lockfs is mounted there already")

	require.NoError(t, first.Process.Signal(syscall.SIGSTOP))
	_, err = syscall.Wait4(first.Process.Pid, nil, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	_, err = Mount(dir, newCluster().open(), Options{})
	require.ErrorContains(t, err, "does not answer")

	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	_, err = os.Lstat(dir)
	require.ErrorIs(t, err, syscall.ENOTCONN)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	m := mountAt(t, link, newCluster().open(), Options{})
	require.Equal(t, dir, m.dir)
	writeFile(t, dir, "f", "")
}

func TestUnmountInUse(t *testing.T) {
	dir := t.TempDir()
	m := mountAt(t, dir, newCluster().open(), Options{})
	f := openFile(t, writeFile(t, dir, "f", "hello"), os.O_RDWR)
	require.NoError(t, m.Unmount())
	m.Wait()
	require.NotContains(t, mountTable(t), dir)
	requireContent(t, f, "hello")
	require.NoError(t, m.Unmount())
	require.NoError(t, f.Close())
	select {
	case <-m.served:
	case <-time.After(5 * time.Second):
		require.Fail(t, "the mount outlives its last user")
	}
}

func TestUnmountFromOutside(t *testing.T) {
	dir := t.TempDir()
	m := mountAt(t, dir, newCluster().open(), Options{})
	require.NoError(t, unix.Unmount(dir, 0))
	m.Wait()
	require.NoError(t, m.Unmount())
}

// TestOrdinaryUser needs a /dev/fuse that everybody may open. Where it is not so, it runs itself in a mount
// namespace that has one.
func TestOrdinaryUser(t *testing.T) {
	device, err := os.Stat("/dev/fuse")
	require.NoError(t, err)
	if device.Mode().Perm() != 0o666 {
		output, err := exec.Command("unshare", "--mount", "sh", "-e", "-c", `
			mount -t tmpfs tmpfs /mnt
			mknod -m 666 /mnt/fuse c 10 229
			mount --bind /mnt/fuse /dev/fuse
			exec "$0" -test.run '^TestOrdinaryUser$' -test.v`, os.Args[0]).CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), "--- PASS: TestOrdinaryUser")
		return
	}
	dir, err := os.MkdirTemp("", "lockfs-user")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(dir) })
	require.NoError(t, os.Chown(dir, nobody, nobody))

	stopped := startChild(t, "user", dir)
	require.Contains(t, mountTable(t), " - fuse.lockfs ")
	output, err := runAs(t, nobody, dir, "sh", "-c", "set -C; echo held >lock; cat lock; stat -c %u lock")
	require.NoError(t, err, output)
	require.Equal(t, "held\n65534", output)

	holder := holdOpen(t, filepath.Join(dir, "lock"))
	require.NoError(t, stopped.stdin.Close())
	require.NoError(t, stopped.Wait(), "it stops though a file is open")
	require.NotContains(t, mountTable(t), dir)
	_ = holder.Process.Kill()

	killed := startChild(t, "user", dir)
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait()
	startChild(t, "user", dir)
}

// holdOpen starts a process of the ordinary user that has a file open until the test ends.
func holdOpen(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", `exec 3<"$0"; echo open; exec sleep 100`, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return cmd
}

func TestObserver(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]syscall.Errno)
	dir := t.TempDir()
	mountAt(t, dir, newCluster().open(), Options{Observer: func(op string, code syscall.Errno, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		seen[op] = max(seen[op], code)
	}})
	writeFile(t, dir, "f", "hello")
	require.ErrorIs(t, os.Truncate(filepath.Join(dir, "f"), 1<<30), syscall.EFBIG)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, syscall.ENOENT, seen["lookup"])
	require.Equal(t, syscall.EFBIG, seen["setattr"])
	require.Contains(t, seen, "create")
	require.Zero(t, seen["write"])
}

// TestInUseIsToldByTheKernel has mounts end while a program has a file open, and just after the last one has closed it.
func TestInUseIsToldByTheKernel(t *testing.T) {
	ends := map[string]func(*Mounted) error{
		"ordinary": func(m *Mounted) error { return m.Unmount() },
		"lazy":     func(m *Mounted) error { return unix.Unmount(m.dir, unix.MNT_DETACH) },
		"forced":   func(m *Mounted) error { return unix.Unmount(m.dir, unix.MNT_DETACH|unix.MNT_FORCE) },
		"aborted":  func(m *Mounted) error { return errors.Join(m.connection.End(), unix.Unmount(m.dir, unix.MNT_DETACH)) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := mountAt(t, dir, newCluster().open(), Options{})
			f := openFile(t, writeFile(t, dir, "f", ""), os.O_RDWR)
			require.True(t, m.InUse())
			require.NoError(t, end(m))
			require.True(t, m.InUse())
			_ = f.Close() // an error where the mount has been forced to an end
			eventually(t, "nobody uses it", func() bool { return !m.InUse() })
		})
		t.Run(name+", not in use", func(t *testing.T) {
			dir := t.TempDir()
			m := mountAt(t, dir, newCluster().open(), Options{})
			m.fs.files.Add(&fileHandle{}) // as if the kernel had not told of a close
			writeFile(t, dir, "f", "")
			require.NoError(t, end(m))
			eventually(t, "nobody uses it", func() bool { return !m.InUse() })
		})
	}
}
