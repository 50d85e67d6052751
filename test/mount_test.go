package test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

func TestMountWithoutAVoter(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	h := c.client(t, "m")
	// It is told of one server and finds the others.
	p := c.mountOn(t, h, c.nodes[0].apiAddr())
	requireLocking(t, c, h, c.nodes[1].host)
	requireLocking(t, c, c.nodes[2].host, h)
	for _, n := range c.nodes {
		c.nodes[0].awaitSession(t, "m", "a session of the client", one)
		n.kill()
		requireLocking(t, c, h, c.others(n)[0].host)
		n.start(t)
	}
	require.NoError(t, p.Stop(), "SIGTERM")
	require.Zero(t, mounts(t, h, c.mount))
	c.nodes[0].awaitSession(t, "m", "the session ends with the mount", none)
}

// TestMountThroughMount8 uses mount(8), which wants its helper in /sbin.
func TestMountThroughMount8(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	h := c.client(t, "m")
	h.MustRun(t, "sh", "-ec", `
		mount -t tmpfs tmpfs /mnt
		mkdir /mnt/upper /mnt/work
		mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/mnt/upper,workdir=/mnt/work /usr/sbin
		[ /sbin -ef /usr/sbin ] || mount --bind /usr/sbin /sbin
		ln -s "$1" /sbin/mount.lockfs
		ln -s "$1" /sbin/mount.fuse.lockfs`, "sh", c.program)
	source := c.nodes[0].host.Addr() // the port is the default one

	_, err := h.Run("mount", "-t", "lockfs", source, c.mount, "-o", "bogus=1")
	require.ErrorContains(t, err, "bogus=1")
	require.Zero(t, mounts(t, h, c.mount))

	h.MustRun(t, "mount", "-t", "lockfs", source, c.mount, "-o", "name=build-7,op-timeout=5s,_netdev,noexec")
	require.Contains(t, h.MustRun(t, "grep", " fuse.lockfs ", "/proc/mounts"), "noexec")
	requireLocking(t, c, h, c.nodes[0].host)
	c.nodes[0].awaitSession(t, "build-7", "a session under the name that was given", one)
	h.MustRun(t, "umount", c.mount)
	c.nodes[0].awaitSession(t, "build-7", "the session ends with umount", none)
	hosts.Eventually(t, "the process ends with umount", func() (string, bool) {
		running, err := h.Run("pgrep", "--ns", "1", "--nslist", "pid", "-a", "lockfs")
		return running, err != nil && running == ""
	})
}

// TestFstab mounts what /etc/fstab says, again, and with other options.
func TestFstab(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	h := c.client(t, "m")
	source := c.nodes[0].host.Addr() + ",10.77.0.99"
	h.MustRun(t, "sh", "-ec", `
		mount -t tmpfs tmpfs /mnt
		mkdir /mnt/upper /mnt/work
		mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/mnt/upper,workdir=/mnt/work /usr/sbin
		[ /sbin -ef /usr/sbin ] || mount --bind /usr/sbin /sbin
		ln -s "$1" /sbin/mount.lockfs
		ln -s "$1" /sbin/mount.fuse.lockfs
		echo "$2 $3 lockfs _netdev,nofail,op-timeout=5s 0 0" > /mnt/fstab
		mount --bind /mnt/fstab /etc/fstab`, "sh", c.program, source, c.mount)
	options := func() string {
		return h.MustRun(t, "sh", "-c", "grep ' fuse.lockfs ' /proc/mounts | cut -d ' ' -f 1,4")
	}

	for range 2 {
		h.MustRun(t, "mount", "-a")
		require.Equal(t, 1, mounts(t, h, c.mount))
		c.nodes[0].awaitSession(t, "m", "one session", one)
	}
	h.MustRun(t, "mount", c.mount)
	h.MustRun(t, "mount", "-t", "lockfs", source, c.mount)
	require.Equal(t, 1, mounts(t, h, c.mount))
	_, err := h.Run("mount", "-t", "lockfs", c.nodes[0].host.Addr(), c.mount)
	require.ErrorContains(t, err, "mounted there already")
	require.Contains(t, options(), source+" rw,nosuid,nodev,")

	for _, remount := range [][]string{{c.mount}, {"-t", "lockfs", source, c.mount}, {"-t", "fuse.lockfs", source, c.mount}} {
		h.MustRun(t, "mount", append([]string{"-o", "remount,ro,noexec"}, remount...)...)
		require.Contains(t, options(), source+" ro,nosuid,nodev,noexec,")
		_, err = h.Run("mkdir", c.path("dir"))
		require.ErrorContains(t, err, "Read-only file system")
		h.MustRun(t, "mount", append([]string{"-o", "remount,rw,exec"}, remount...)...)
		require.Contains(t, options(), source+" rw,nosuid,nodev,relatime,")
		requireLocking(t, c, h, c.nodes[0].host)
	}
	said := h.Start("mount", "-o", "remount,op-timeout=1s", c.mount)
	require.NoError(t, said.Wait())
	require.Contains(t, said.Log(), "op-timeout cannot change while it is mounted")
	h.MustRun(t, "umount", c.mount)
	c.nodes[0].awaitSession(t, "m", "the session ends with umount", none)
}

// TestMountAgainWhileOneLingers unmounts what is still in use, in two ways, and mounts again in its place.
func TestMountAgainWhileOneLingers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	h := c.client(t, "m")
	for _, use := range []struct {
		what, unmount string
		begin         func() *hosts.Process
	}{
		{"a file is open", "umount -l", func() *hosts.Process {
			return h.Start("sh", "-c", "exec 9> "+c.path("open")+"; echo begun; exec sleep 1000")
		}},
		{"another mount namespace has a copy", "umount", func() *hosts.Process {
			return h.Start("unshare", "--mount", "sh", "-c", "echo begun; exec sleep 1000")
		}},
	} {
		t.Run(use.what, func(t *testing.T) {
			before := c.mountOn(t, h, c.servers())
			user := use.begin()
			require.NoError(t, user.WaitOutput("begun"))
			h.MustRun(t, "sh", "-c", use.unmount+" "+c.mount)
			after := c.mountOn(t, h, c.servers())
			require.Equal(t, 1, mounts(t, h, c.mount))
			c.nodes[0].awaitSession(t, "m", "two sessions", func(s []session) bool { return len(s) == 2 })
			requireLocking(t, c, h, c.nodes[0].host)
			require.NoError(t, before.Stop())
			require.Equal(t, 1, mounts(t, h, c.mount), "it has unmounted the other one")
			requireLocking(t, c, h, c.nodes[0].host)
			user.Kill()
			require.NoError(t, after.Stop())
			require.Empty(t, h.MustRun(t, "sh", "-c", "ls /run/lockfs"), "session files")
		})
	}
}

// TestMountInTheBackground returns once it is mounted, or says why it is not.
func TestMountInTheBackground(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	h := c.client(t, "m")
	h.MustRun(t, c.program, "mount", "--daemon", "--servers", c.servers(), c.mount)
	require.Equal(t, 1, mounts(t, h, c.mount))
	requireLocking(t, c, h, c.nodes[0].host)
	_, err := h.Run(c.program, "mount", "--daemon", "--servers", c.servers(), c.mount)
	require.Error(t, err, "mounted twice")
	h.MustRun(t, "umount", c.mount)
	c.nodes[0].awaitSession(t, "m", "the session ends with umount", none)
}

func TestMountGivesUpWithoutACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	h := c.client(t, "m")
	_, err := h.Run(c.program, "mount", "--servers", "127.0.0.1:1", "--wait", "300ms", c.mount)
	require.ErrorContains(t, err, "127.0.0.1:1")
}

// TestDeadDaemon leaves "Transport endpoint is not connected" behind, for its successor to clean up.
func TestDeadDaemon(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	h := c.client(t, "m")
	p := c.mountOn(t, h, c.servers())
	before := c.nodes[0].awaitSession(t, "m", "a session", one)
	h.MustRun(t, "sh", "-c", "set -C; echo held > "+c.path("mine"))
	p.Kill()
	c.awaitDeadMount(t, h)

	p = c.mountOn(t, h, c.servers())
	require.Equal(t, 1, mounts(t, h, c.mount))
	require.Equal(t, "held\n", h.MustRun(t, "cat", c.path("mine")))
	requireLocking(t, c, h, c.nodes[0].host)
	after := c.nodes[0].awaitSession(t, "m", "the same session", one)
	require.Equal(t, before[0].ID, after[0].ID, "taken over")
	require.NoError(t, p.Stop())
}

// TestSilentMount loses its session, and goes on with another.
func TestSilentMount(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, shortTerm...)
	h := c.client(t, "m")
	p := c.mountOn(t, h, c.servers())
	for _, silence := range []struct {
		what       string
		begin, end func()
	}{
		{"cut off", h.Cut, h.Heal},
		{"frozen", p.Freeze, p.Thaw},
	} {
		before := c.nodes[0].awaitSession(t, "m", "a session", one)
		silence.begin()
		c.nodes[0].awaitSession(t, "m", "the session ends: "+silence.what, none)
		silence.end()
		requireLocking(t, c, h, c.nodes[0].host)
		after := c.nodes[0].awaitSession(t, "m", "another session", one)
		require.NotEqual(t, before[0].ID, after[0].ID, silence.what)
	}
	require.NoError(t, p.Stop())
}

// TestSignals interrupt nothing.
func TestSignals(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	itimer := ClientPath(t, "itimer.py")
	out := c.nodes[0].host.MustRun(t, "python3", itimer, c.mount, "300")
	var signals int
	_, err := fmt.Sscanf(out, "signals: %d", &signals)
	require.NoError(t, err, out)
	require.Greater(t, signals, 100)
}

func TestMountLimit(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, "--max-sessions", "1") // that of the server's own mount
	_, err := c.client(t, "m").Run(c.program, "mount", "--servers", c.servers(), c.mount)
	require.ErrorContains(t, err, "--max-sessions")
}
