package mountpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestParseMounts(t *testing.T) {
	const table = `24 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw
99 24 0:30 / /tmp/a\040b\134c rw,nosuid - fuse.lockfs 10.0.0.1,\040b rw,user_id=0
what is this
`
	require.Equal(t, []mountEntry{
		{id: 24, parent: 1, device: 254<<20 | 1, point: "/", fsType: "ext4", source: "/dev/root"},
		{id: 99, parent: 24, device: 30, point: `/tmp/a b\c`, fsType: "fuse.lockfs", source: "10.0.0.1, b", user: "0"},
	}, parseMounts(table))
}

// TestNobodyIsSentToTheMountOfAnother but root: what it says, and whether it ever does, is up to whoever made it.
func TestNobodyIsSentToTheMountOfAnother(t *testing.T) {
	mounts := parseMounts(`99 24 0:30 / /locks rw,nosuid - fuse.lockfs 10.0.0.1 rw,user_id=0,group_id=0,default_permissions,allow_other
100 24 0:31 / /tmp/anne rw,nosuid - fuse.lockfs bait rw,user_id=1001,group_id=1001,allow_other
101 24 0:32 / /mnt rw - ext4 /dev/sdb rw
`)
	require.Equal(t, []string{"/locks"}, pointsFor(1002, mounts))
	require.Equal(t, []string{"/locks", "/tmp/anne"}, pointsFor(1001, mounts))
}

// TestStackOfMounts has a mount that was put beneath an older one, and one on top of both.
func TestStackOfMounts(t *testing.T) {
	stack := stackAt(parseMounts(`24 1 254:1 / / rw - ext4 /dev/root rw
99 101 0:30 / /locks rw - fuse.lockfs dead rw,user_id=0
101 24 0:31 / /locks rw - fuse.lockfs beneath rw,user_id=0
102 24 0:32 / /other rw - fuse.lockfs other rw,user_id=0
103 99 0:33 / /locks rw - fuse.lockfs top rw,user_id=0
`), "/locks")
	var sources []string
	for _, m := range stack {
		sources = append(sources, m.source)
	}
	require.Equal(t, []string{"beneath", "dead", "top"}, sources)
}

func TestDeviceOfAMount(t *testing.T) {
	var stat unix.Stat_t
	require.NoError(t, unix.Stat("/proc", &stat))
	m, err := mountedAt("/proc")
	require.NoError(t, err)
	require.Equal(t, unix.Major(stat.Dev)<<20|unix.Minor(stat.Dev), m.device)
	m, err = mountedAt("/there is no such mount")
	require.NoError(t, err)
	require.Nil(t, m)
}
