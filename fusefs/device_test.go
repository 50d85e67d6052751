package fusefs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/mountpoint"
)

func TestDeviceIsNotInherited(t *testing.T) {
	mountFor(t, newCluster())
	devices, err := mountpoint.Devices()
	require.NoError(t, err)
	require.NotEmpty(t, devices)
	for fd := range devices {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC, "descriptor %d", fd)
	}
}
