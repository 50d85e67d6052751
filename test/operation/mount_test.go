package operation

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

func TestMountWithoutAVoter(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	h := c.AddClient(t, "m")
	// It is told of one server and finds the others.
	p := c.MountOn(t, h, c.Nodes[0].Addr())
	testcluster.RequireLocking(t, c, h, c.Nodes[1].Host)
	testcluster.RequireLocking(t, c, c.Nodes[2].Host, h)
	for _, n := range c.Nodes {
		c.Nodes[0].AwaitSession(t, "m", "a session of the client", testcluster.OneSession)
		n.Kill()
		testcluster.RequireLocking(t, c, h, c.Others(n)[0].Host)
		n.Start(t)
	}
	require.NoError(t, p.Stop(), "SIGTERM")
	require.Zero(t, testcluster.CountMounts(t, h, c.Mount))
	c.Nodes[0].AwaitSession(t, "m", "the session ends with the mount", testcluster.NoSession)
}

// TestMountWithoutSpaceForItsSession has a full /run: that is an error, and no signal later.
func TestMountWithoutSpaceForItsSession(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 1)
	h := c.AddClient(t, "m")
	h.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=256k", "full", "/run")
	_, err := h.Run(c.Program, "mount", c.Mount, "--servers", c.Nodes[0].Host.Addr(), "--insecure")
	require.ErrorContains(t, err, "session file: fallocate /run/lockfs/")
	require.ErrorContains(t, err, "no space left on device")
	require.Zero(t, testcluster.CountMounts(t, h, c.Mount))
}

// TestMountThroughMount8 uses mount(8), which wants its helper in /sbin.
func TestMountThroughMount8(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 1)
	h := c.AddClient(t, "m")
	h.MustRun(t, "sh", "-ec", `
		mount -t tmpfs tmpfs /mnt
		mkdir /mnt/upper /mnt/work
		mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/mnt/upper,workdir=/mnt/work /usr/sbin
		[ /sbin -ef /usr/sbin ] || mount --bind /usr/sbin /sbin
		ln -s "$1" /sbin/mount.lockfs
		ln -s "$1" /sbin/mount.fuse.lockfs`, "sh", c.Program)
	source := c.Nodes[0].Host.Addr() // the port is the default one

	_, err := h.Run("mount", "-t", "lockfs", source, c.Mount, "-o", "bogus=1")
	require.ErrorContains(t, err, "bogus=1")
	require.Zero(t, testcluster.CountMounts(t, h, c.Mount))

	h.MustRun(t, "mount", "-t", "lockfs", source, c.Mount, "-o", "insecure,name=build-7,op-timeout=5s,_netdev,noexec")
	require.Contains(t, h.MustRun(t, "grep", " fuse.lockfs ", "/proc/mounts"), "noexec")
	testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
	c.Nodes[0].AwaitSession(t, "build-7", "a session under the name that was given", testcluster.OneSession)
	h.MustRun(t, "umount", c.Mount)
	c.Nodes[0].AwaitSession(t, "build-7", "the session ends with umount", testcluster.NoSession)
	hosts.Eventually(t, "the process ends with umount", func() (string, bool) {
		running, err := h.Run("pgrep", "--ns", "1", "--nslist", "pid", "-a", "lockfs")
		return running, err != nil && running == ""
	})
}

// TestFstab mounts what /etc/fstab says, again, and with other options.
func TestFstab(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 1)
	h := c.AddClient(t, "m")
	source := c.Nodes[0].Host.Addr() + ",10.77.0.99"
	h.MustRun(t, "sh", "-ec", `
		mount -t tmpfs tmpfs /mnt
		mkdir /mnt/upper /mnt/work
		mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/mnt/upper,workdir=/mnt/work /usr/sbin
		[ /sbin -ef /usr/sbin ] || mount --bind /usr/sbin /sbin
		ln -s "$1" /sbin/mount.lockfs
		ln -s "$1" /sbin/mount.fuse.lockfs
		echo "$2 $3 lockfs _netdev,nofail,insecure,op-timeout=5s 0 0" > /mnt/fstab
		mount --bind /mnt/fstab /etc/fstab`, "sh", c.Program, source, c.Mount)
	options := func() string {
		return h.MustRun(t, "sh", "-c", "grep ' fuse.lockfs ' /proc/mounts | cut -d ' ' -f 1,4")
	}

	for range 2 {
		h.MustRun(t, "mount", "-a")
		require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount))
		c.Nodes[0].AwaitSession(t, "m", "one session", testcluster.OneSession)
	}
	h.MustRun(t, "mount", c.Mount)
	h.MustRun(t, "mount", "-t", "lockfs", source, c.Mount)
	require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount))
	_, err := h.Run("mount", "-t", "lockfs", c.Nodes[0].Host.Addr(), c.Mount, "-o", "insecure")
	require.ErrorContains(t, err, "mounted there already")
	require.Contains(t, options(), source+" rw,nosuid,nodev,")

	for _, remount := range [][]string{{c.Mount}, {"-t", "lockfs", source, c.Mount}, {"-t", "fuse.lockfs", source, c.Mount}} {
		h.MustRun(t, "mount", append([]string{"-o", "remount,ro,noexec"}, remount...)...)
		require.Contains(t, options(), source+" ro,nosuid,nodev,noexec,")
		_, err = h.Run("mkdir", c.Path("dir"))
		require.ErrorContains(t, err, "Read-only file system")
		h.MustRun(t, "mount", append([]string{"-o", "remount,rw,exec"}, remount...)...)
		require.Contains(t, options(), source+" rw,nosuid,nodev,relatime,")
		testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
	}
	said := h.Start("mount", "-o", "remount,op-timeout=1s", c.Mount)
	require.NoError(t, said.Wait())
	require.Contains(t, said.Log(), "op-timeout cannot change while mounted")
	h.MustRun(t, "umount", c.Mount)
	c.Nodes[0].AwaitSession(t, "m", "the session ends with umount", testcluster.NoSession)
}

// TestMountAgainWhileOneLingers unmounts what is still in use, in two ways, and mounts again in its place.
func TestMountAgainWhileOneLingers(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	for _, use := range []struct {
		what, unmount string
		begin         func() *hosts.Process
	}{
		{"a file is open", "umount -l", func() *hosts.Process {
			return h.Start("sh", "-c", "exec 9> "+c.Path("open")+"; echo begun; exec sleep 1000")
		}},
		{"another mount namespace has a copy", "umount", func() *hosts.Process {
			return h.Start("unshare", "--mount", "sh", "-c", "echo begun; exec sleep 1000")
		}},
	} {
		t.Run(use.what, func(t *testing.T) {
			before := c.MountOn(t, h, c.Servers())
			user := use.begin()
			require.NoError(t, user.WaitOutput("begun"))
			h.MustRun(t, "sh", "-c", use.unmount+" "+c.Mount)
			after := c.MountOn(t, h, c.Servers())
			require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount))
			c.Nodes[0].AwaitSession(t, "m", "two sessions", func(s []testcluster.Session) bool { return len(s) == 2 })
			testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
			require.NoError(t, before.Stop())
			require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount), "it has unmounted the other one")
			testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
			user.Kill()
			require.NoError(t, after.Stop())
			require.Empty(t, h.MustRun(t, "sh", "-c", "ls /run/lockfs"), "session files")
		})
	}
}

// TestMountInTheBackground returns once it is mounted, or says why it is not.
func TestMountInTheBackground(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	h.MustRun(t, c.Program, append([]string{"mount", "--daemon", c.Mount}, c.MountFlags(t, "m", c.Servers())...)...)
	require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount))
	testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
	_, err := h.Run(c.Program, append([]string{"mount", "--daemon", c.Mount}, c.MountFlags(t, "m", c.Servers())...)...)
	require.Error(t, err, "mounted twice")
	h.MustRun(t, "umount", c.Mount)
	c.Nodes[0].AwaitSession(t, "m", "the session ends with umount", testcluster.NoSession)
}

func TestMountGivesUpWithoutACluster(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t)
	h := c.AddClient(t, "m")
	_, err := h.Run(c.Program, "mount", "--insecure", "--servers", "127.0.0.1:1", "--wait", "300ms", c.Mount)
	require.ErrorContains(t, err, "127.0.0.1:1")
}

// TestDeadDaemon leaves "Transport endpoint is not connected" behind, for its successor to clean up.
func TestDeadDaemon(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	p := c.MountOn(t, h, c.Servers())
	before := c.Nodes[0].AwaitSession(t, "m", "a session", testcluster.OneSession)
	h.MustRun(t, "sh", "-c", "set -C; echo held > "+c.Path("mine"))
	p.Kill()
	c.AwaitDeadMount(t, h)

	p = c.MountOn(t, h, c.Servers())
	require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount))
	require.Equal(t, "held\n", h.MustRun(t, "cat", c.Path("mine")))
	testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
	after := c.Nodes[0].AwaitSession(t, "m", "the same session", testcluster.OneSession)
	require.Equal(t, before[0].ID, after[0].ID, "taken over")
	require.NoError(t, p.Stop())
}

// TestSilentMount loses its session, and goes on with another.
func TestSilentMount(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, testcluster.ShortTerm...)
	h := c.AddClient(t, "m")
	p := c.MountOn(t, h, c.Servers())
	for _, silence := range []struct {
		what       string
		begin, end func()
	}{
		{"cut off", h.Cut, h.Heal},
		{"frozen", p.Freeze, p.Thaw},
	} {
		before := c.Nodes[0].AwaitSession(t, "m", "a session", testcluster.OneSession)
		silence.begin()
		c.Nodes[0].AwaitSession(t, "m", "the session ends: "+silence.what, testcluster.NoSession)
		silence.end()
		testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
		after := c.Nodes[0].AwaitSession(t, "m", "another session", testcluster.OneSession)
		require.NotEqual(t, before[0].ID, after[0].ID, silence.what)
	}
	require.NoError(t, p.Stop())
}

// TestSignals interrupt nothing.
func TestSignals(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	itimer := testcluster.ClientPath(t, "itimer.py")
	out := c.Nodes[0].Host.MustRun(t, "python3", itimer, c.Mount, "300")
	var signals int
	_, err := fmt.Sscanf(out, "signals: %d", &signals)
	require.NoError(t, err, out)
	require.Greater(t, signals, 100)
}

func TestMountLimit(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, "--max-sessions", "1") // that of the server's own mount
	args := append([]string{"mount", c.Mount}, c.MountFlags(t, "m", c.Servers())...)
	_, err := c.AddClient(t, "m").Run(c.Program, args...)
	require.ErrorContains(t, err, "--max-sessions")
}
