package testcluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A Root is a separate system on a host, mostly this machine's with an overlay of its own, which tests can
// change. It runs no systemd.
type Root struct{ *hosts.Host }

// Directories of the root and of its changes.
const (
	RootDir     = "/mnt/root"
	RootChanges = "/mnt/over/new"
)

// NewRoot makes the root of a host over a directory. All hosts see the shared directory at the same path.
func NewRoot(t testing.TB, h *hosts.Host, below, shared string) *Root {
	t.Helper()
	// Its own directories: an overlay does not include mounts below.
	h.MustRun(t, "sh", "-ec", `
		mount -t tmpfs of-this-host /mnt
		mkdir -p "$1" /mnt/over/new /mnt/over/work
		mount -t overlay of-this-host -o "lowerdir=$2,upperdir=/mnt/over/new,workdir=/mnt/over/work" "$1"
		for dir in dev proc sys; do mount --rbind "/$dir" "$1/$dir"; done
		for dir in run tmp; do mount -t tmpfs of-this-host "$1/$dir"; done
		mkdir -p "$1$3"
		mount --bind "$3" "$1$3"
		rm -rf "$1/etc/lockfs" "$1/var/lib/lockfs"`,
		"sh", RootDir, below, shared)
	return &Root{h}
}

// In returns a command on that system.
func In(name string, args ...string) []string {
	return append([]string{"chroot", RootDir, name}, args...)
}

// RunIn runs a command on that system.
func (r *Root) RunIn(name string, args ...string) (string, error) {
	command := In(name, args...)
	return r.Run(command[0], command[1:]...)
}

// MustRunIn is RunIn and requires success.
func (r *Root) MustRunIn(t testing.TB, name string, args ...string) string {
	t.Helper()
	text, err := r.RunIn(name, args...)
	require.NoError(t, err)
	return text
}
