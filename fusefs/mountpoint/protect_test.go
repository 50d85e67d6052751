package mountpoint

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// requireNoCreation checks that not even root can create anything in a directory.
func requireNoCreation(t *testing.T, dir string, want error) {
	t.Helper()
	_, err := os.OpenFile(filepath.Join(dir, "x.lock"), os.O_CREATE|os.O_EXCL, 0o600)
	require.ErrorIs(t, err, want)
	require.ErrorIs(t, os.Mkdir(filepath.Join(dir, "d"), 0o700), want)
}

func TestBareDirectoryIsMadeImmutable(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { _, _ = Unprotect(dir) })
	bare, changed, err := Protect(dir)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, &Bare{Path: dir, Protection: Immutable, Empty: true}, bare)
	requireNoCreation(t, dir, unix.EPERM)
	_, changed, err = Protect(dir)
	require.NoError(t, err)
	require.False(t, changed)

	changed, err = Unprotect(dir)
	require.NoError(t, err)
	require.True(t, changed)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	_, _, err = Protect(dir)
	require.ErrorIs(t, err, ErrNotEmpty)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "e"), 0o700))
}

// TestBareDirectoryIsCovered where its file system has no attributes: ramfs.
func TestBareDirectoryIsCovered(t *testing.T) {
	ram := t.TempDir()
	require.NoError(t, unix.Mount("test", ram, "ramfs", 0, ""))
	dir := filepath.Join(ram, "locks")
	t.Cleanup(func() {
		_, err := Unprotect(dir)
		require.NoError(t, err)
		require.NoError(t, unix.Unmount(ram, unix.MNT_DETACH))
	})
	require.NoError(t, os.Mkdir(dir, 0o755))
	bare, changed, err := Protect(dir)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, Covered, bare.Protection)
	requireNoCreation(t, dir, unix.EROFS)
	_, changed, err = Protect(dir)
	require.NoError(t, err)
	require.False(t, changed)
	bare, err = Examine(dir)
	require.NoError(t, err)
	require.Equal(t, Covered, bare.Protection)

	changed, err = Unprotect(dir)
	require.NoError(t, err)
	require.True(t, changed)
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Mkdir(dir, 0o755))

	// Below a mount, where it is seen when that is gone.
	deadMount(t, dir, "dead", onTop)
	bare, changed, err = Protect(dir)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, &Bare{Path: dir, Mounted: true, Protection: Covered, Empty: true}, bare)
	require.Equal(t, []string{coverSource, "dead"}, sourcesAt(t, dir))
	_, err = Unprotect(dir)
	require.ErrorContains(t, err, "lockfs is mounted over the read-only tmpfs")
	require.NoError(t, Detach(dir, true))
	requireNoCreation(t, dir, unix.EROFS)
}

func TestReadOnlyFileSystemIsProtection(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mount("test", dir, "ramfs", unix.MS_RDONLY, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	bare, changed, err := Protect(dir)
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, ReadOnly, bare.Protection)
}

// deadMount leaves what a killed process does: a mount of lockfs that nothing serves.
func deadMount(t *testing.T, dir, source string, how int) {
	t.Helper()
	device, err := OpenDevice()
	require.NoError(t, err)
	fs, err := NewFuse(source, device, 4096, nil)
	require.NoError(t, err)
	fd, path, _, err := inspectOpen(dir)
	require.NoError(t, err)
	place := &Place{Path: path, seen: os.NewFile(uintptr(fd), path), logger: slog.New(slog.DiscardHandler)}
	_, err = place.attach(fs.root, how)
	require.NoError(t, err)
	require.NoError(t, place.Close())
	require.NoError(t, fs.Close())
	require.NoError(t, unix.Close(device))
}

func sourcesAt(t *testing.T, dir string) (sources []string) {
	t.Helper()
	stack, err := mountsAt(dir)
	require.NoError(t, err)
	for _, m := range stack {
		sources = append(sources, m.source)
	}
	return sources
}

// TestDeadMountCoversTheBareDirectory until a new one is there. Of several dead mounts the lowest stays.
func TestDeadMountCoversTheBareDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() {
		for len(sourcesAt(t, dir)) > 0 {
			require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH))
		}
	})
	for _, source := range []string{"dead1", "dead2", "dead3"} {
		deadMount(t, dir, source, onTop)
	}
	place, err := Prepare(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, []string{"dead1"}, sourcesAt(t, dir))
	device, err := OpenDevice()
	require.NoError(t, err)
	fs, err := NewFuse("new", device, 4096, []string{"default_permissions", "noexec"})
	require.NoError(t, err)
	connection, err := place.Attach(fs)
	require.NoError(t, err)
	connection.Device = os.NewFile(uintptr(device), fuseDevice)
	require.Equal(t, []string{"new"}, sourcesAt(t, dir))
	require.NoError(t, place.Close())
	require.NoError(t, fs.Close())

	// A kernel before 6.5 has the new mount on top of the dead one, which nothing can remove then.
	require.NoError(t, connection.Device.Close())
	place, err = Prepare(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, []string{"new"}, sourcesAt(t, dir))
	require.NoError(t, place.Close())
	deadMount(t, dir, "top", onTop)
	require.Equal(t, []string{"new", "top"}, sourcesAt(t, dir))
	require.ErrorContains(t, connection.Detach(true), "something else is mounted over it")
}
