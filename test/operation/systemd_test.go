package operation

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A booted host is one on which systemd runs: the real one, with processes and a file system of its own.
type booted struct {
	*hosts.Host
	systemd string // its pid
}

func boot(t testing.TB, h *hosts.Host, dir string) *booted {
	t.Helper()
	script := testcluster.SourcePath(t, "test/operation/systemd.sh")
	h.MustRun(t, "mkdir", dir)
	h.Start("unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--ipc", "sh", script, dir, testcluster.Program(t))
	b := &booted{Host: h}
	hosts.Eventually(t, "systemd runs", func() (string, bool) {
		found, err := h.Run("pgrep", "--full", "^/lib/systemd/systemd --unit")
		if err != nil {
			return fmt.Sprint(err), false
		}
		b.systemd = strings.TrimSpace(found)
		state, err := b.run("systemctl", "is-system-running")
		state = strings.TrimSpace(state)
		return fmt.Sprint(state, err), state == "running" || state == "degraded" // some unit of this machine may fail
	})
	return b
}

// within is the command line that does something where systemd runs.
func (b *booted) within(args ...string) []string {
	return append([]string{"--target", b.systemd, "--mount", "--pid", "--cgroup", "--ipc", "--root", "--wd", "env", "-i",
		"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, args...)
}

func (b *booted) run(args ...string) (string, error) { return b.Run("nsenter", b.within(args...)...) }

func (b *booted) must(t testing.TB, args ...string) string {
	t.Helper()
	text, err := b.run(args...)
	if err != nil {
		said, _ := b.run("tail", "--lines=30", "/run/said")
		require.NoError(t, err, "the daemon wrote last:\n%s", said)
	}
	return strings.TrimSpace(text)
}

// property is what systemd says of the unit.
func (b *booted) property(t testing.TB, name string) string {
	t.Helper()
	return b.must(t, "systemctl", "show", "--property="+name, "--value", "lockfs")
}

// awaitSaid waits until the daemon has said something for the n-th time.
func (b *booted) awaitSaid(t testing.TB, what string, n int) {
	t.Helper()
	hosts.Eventually(t, "the daemon says "+what, func() (string, bool) {
		said := b.must(t, "cat", "/run/said")
		return said, strings.Count(said, what) >= n
	})
}

// unitCapabilities are those that a unit leaves to its processes: DAC_OVERRIDE, FOWNER, LINUX_IMMUTABLE, NET_BIND_SERVICE, NET_ADMIN, SYS_PTRACE and
// SYS_ADMIN.
const unitCapabilities = 1<<1 | 1<<3 | 1<<9 | 1<<10 | 1<<12 | 1<<19 | 1<<21

// requireConfined checks that the daemon and its guard have what their unit leaves to them and no more, and the mount namespace of the host.
func (b *booted) requireConfined(t testing.TB) {
	t.Helper()
	var found []string
	hosts.Eventually(t, "a daemon and one guard", func() (string, bool) {
		text, err := b.run("pgrep", "--full", "^[^ ]*lockfs (server|mount|guard)( |$)")
		found = strings.Fields(text)
		return fmt.Sprint(found, err), len(found) == 2
	})
	for _, pid := range found {
		status := b.must(t, "cat", "/proc/"+pid+"/status")
		for _, line := range []string{
			"NoNewPrivs:\t1", "Seccomp:\t2", fmt.Sprintf("CapBnd:\t%016x", unitCapabilities), fmt.Sprintf("CapEff:\t%016x", unitCapabilities),
		} {
			require.Contains(t, status, line+"\n", pid)
		}
		for _, namespace := range []string{"mnt", "uts", "pid", "net", "user"} {
			path := "/ns/" + namespace
			require.Equal(t, b.must(t, "readlink", "/proc/1"+path), b.must(t, "readlink", "/proc/"+pid+path), pid)
		}
	}
	require.Equal(t, []string{"-900", "continue"}, []string{b.property(t, "OOMScoreAdjust"), b.property(t, "OOMPolicy")})
}

// TestUnitsAreConfined has the units take from a server and a mount what these do not need, and both do all that they do: programs outside of the
// unit see the mount, the bare directory is protected, a crash frees a lock, and a container is known by its host name.
func TestUnitsAreConfined(t *testing.T) {
	t.Parallel()
	network := hosts.New(t)
	s := boot(t, network.Host("s"), filepath.Join(network.Dir(), "s"))
	m := boot(t, network.Host("m"), filepath.Join(network.Dir(), "m"))
	s.must(t, "lockfs", "up", "--bootstrap")
	m.must(t, "lockfs", "up", s.must(t, "lockfs", "token", "create", "--role", "client"))
	for _, b := range []*booted{s, m} {
		b.requireConfined(t)
		b.must(t, "mountpoint", "--quiet", "/locks")

		crashed := "/locks/crashed-on-" + b.Name() + ".lock"
		_, err := b.run(append([]string{"setpriv"}, nobody("sh", "-c", "set -C; echo $$ > "+crashed+"; kill -9 $$")...)...)
		require.ErrorContains(t, err, "killed")
		hosts.Eventually(t, "a crash frees the lock", func() (string, bool) {
			list := b.must(t, "ls", "/locks")
			return list, !strings.Contains(list, filepath.Base(crashed))
		})
		inside := "/locks/container-on-" + b.Name() + ".lock"
		require.Equal(t, "pid", b.must(t, "unshare", "--uts", "sh", "-c",
			`hostname inside; set -C; echo $$ inside > "$0"; getfattr --only-values --name user.lockfs.format "$0"`, inside))
		b.must(t, "sh", "-ec", `echo $$ > "/sys/fs/cgroup$(sed -n s/^0:://p "/proc/$0/cgroup")/cgroup.procs"; head -c 0 /dev/fuse; ! head -c 0 /dev/kmsg`,
			b.property(t, "MainPID"))

		b.must(t, "systemctl", "stop", "lockfs")
		b.must(t, "sh", "-c", "chattr -i /locks; umount /locks; rm -r /locks; mkdir /locks; touch /locks/bare; rm /locks/bare")
		b.must(t, "systemctl", "start", "lockfs")
		b.must(t, "touch", "/locks/again")
		b.must(t, "lockfs", "mount-point", "protect")
		b.must(t, "systemctl", "stop", "lockfs")
		_, err = b.run("touch", "/locks/bare")
		require.Error(t, err, "the unit protects the bare directory")
		b.must(t, "systemctl", "start", "lockfs")
	}
	said := s.must(t, "sh", "-c", "lockfs doctor || :")
	for _, line := range strings.Split(said, "\n") { // how full the disk of this machine is does not matter
		require.False(t, strings.HasPrefix(line, "failed") && !strings.HasPrefix(line, "failed   space "), said)
	}
	t.Log(said)
}

// TestAUnitWithAMountNamespaceOfItsOwnDoesNotStart: each such setting hides the mount from all other programs.
func TestAUnitWithAMountNamespaceOfItsOwnDoesNotStart(t *testing.T) {
	t.Parallel()
	network := hosts.New(t)
	s := boot(t, network.Host("s"), filepath.Join(network.Dir(), "booted"))
	s.must(t, "lockfs", "up", "--bootstrap")
	s.must(t, "systemctl", "stop", "lockfs")
	drop := "/etc/systemd/system/lockfs-server.service.d/private.conf"
	for n, setting := range []string{"PrivateTmp=yes", "ProtectSystem=yes", "ProtectKernelModules=yes", "ReadWritePaths=/locks"} {
		s.must(t, "sh", "-c", `printf '[Service]\n%s\n' "$1" > "$2"; systemctl daemon-reload; systemctl start --no-block lockfs`, "sh", setting, drop)
		s.awaitSaid(t, "this unit has a mount namespace of its own", n+1)
		s.must(t, "systemctl", "stop", "lockfs")
	}
	s.must(t, "sh", "-c", `rm "$0"; systemctl daemon-reload; systemctl start lockfs`, drop)
	s.must(t, "touch", "/locks/again")
}

// TestAServerWithoutDataIsNotStartedAgain by systemd: no start would succeed.
func TestAServerWithoutDataIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	network := hosts.New(t)
	s := boot(t, network.Host("s"), filepath.Join(network.Dir(), "booted"))
	s.must(t, "lockfs", "up", "--bootstrap")
	s.must(t, "systemctl", "stop", "lockfs")
	s.must(t, "sh", "-c", "rm -r /var/lib/lockfs/*")
	_, err := s.run("systemctl", "start", "lockfs")
	require.Error(t, err)
	require.Equal(t, []string{"failed", "4", "0"},
		[]string{s.property(t, "ActiveState"), s.property(t, "ExecMainStatus"), s.property(t, "NRestarts")})
	s.awaitSaid(t, "belongs to no cluster", 1)
}

// TestUnderSystemd has a server be what it is on hosts: a unit of systemd. It is killed, is started while somebody else has its port, goes on
// with another program, and is stopped, under a program that uses its mount and notices none of it but the end. For as long as the server
// cannot be started its mount goes on through others, and systemd is told that it is alive.
func TestUnderSystemd(t *testing.T) {
	t.Parallel()
	network := hosts.New(t)
	s := boot(t, network.Host("s"), filepath.Join(network.Dir(), "booted"))
	s.must(t, "lockfs", "up", "--bootstrap")
	others := []*upHost{newUpHost(t, network, "b"), newUpHost(t, network, "c")}
	for _, other := range others {
		other.mustLockfs(t, "up", s.must(t, "lockfs", "token", "create", "--role", "server"))
	}
	s.must(t, "systemctl", "is-enabled", "lockfs-server")
	s.requireConfined(t)
	u := startUser(t, s.Host, append([]string{"nsenter"}, s.within("python3", testcluster.ClientPath(t, "unnoticed.py"), "/locks", "killed")...)...)
	held := func() {
		t.Helper()
		_, err := others[0].Run("flock", "--nonblock", filepath.Join(others[0].mount, "held"), "true")
		require.Error(t, err)
	}
	kill := func() { s.must(t, "kill", "-9", s.property(t, "MainPID")) }

	for n := range testcluster.Rounds(1, 5) {
		kill()
		s.awaitSaid(t, goneOn, n+1)
		held()
	}
	s.requireConfined(t)
	before := strings.Count(s.must(t, "cat", "/run/said"), goneOn)

	hosts.Eventually(t, "the server is ready", func() (string, bool) {
		state := s.property(t, "ActiveState")
		return state, state == "active"
	})
	s.must(t, "touch", "/run/wait") // before it is started again
	kill()
	var occupant net.Listener
	hosts.Eventually(t, "its port is free", func() (string, bool) {
		var err error
		occupant, err = s.Listen(s.Addr() + ":7420")
		return fmt.Sprint(err), err == nil
	})
	s.must(t, "rm", "/run/wait")
	s.awaitSaid(t, goneOn, before+1)
	s.awaitSaid(t, "this server does not start; its mount runs through other servers; retrying", 1)
	s.awaitSaid(t, "address already in use", 1)
	restarts, pid := s.property(t, "NRestarts"), s.property(t, "MainPID")
	told := func() (at time.Duration) {
		text := s.property(t, "WatchdogTimestampMonotonic")
		_, err := fmt.Sscan(text, &at)
		require.NoError(t, err, text)
		return at * time.Microsecond
	}
	first := told()
	hosts.Eventually(t, "systemd is told for longer than it waits that the daemon is alive", func() (string, bool) {
		last := told()
		return fmt.Sprint(first, last), last > first+2*10*time.Second
	})
	require.Equal(t, "activating", s.property(t, "ActiveState"))
	require.Contains(t, s.property(t, "StatusText"), "start failed: ")
	s.must(t, "touch", "/locks/through-others")
	held()
	require.NoError(t, occupant.Close())
	hosts.Eventually(t, "the server is ready", func() (string, bool) {
		state := s.property(t, "ActiveState")
		return state, state == "active"
	})
	require.Equal(t, []string{restarts, pid}, []string{s.property(t, "NRestarts"), s.property(t, "MainPID")}, "the same process")

	s.must(t, "sh", "-c", "cp /usr/local/bin/lockfs /usr/local/bin/new; mv /usr/local/bin/new /usr/local/bin/lockfs")
	s.must(t, "systemctl", "reload", "lockfs")
	s.awaitSaid(t, goneOn, before+2)
	require.Equal(t, pid, s.property(t, "MainPID"))
	require.Equal(t, "/usr/local/bin/lockfs", s.must(t, "readlink", "/proc/"+pid+"/exe"))
	s.requireConfined(t)
	held()
	s.must(t, "pkill", "--full", "unnoticed.py") // a signal would end nsenter alone
	require.NoError(t, u.Wait())
	u.requireUnnoticed(t)

	s.must(t, "systemctl", "stop", "lockfs")
	require.Equal(t, "success", s.property(t, "Result"))
	_, err := s.run("mountpoint", "--quiet", "/locks")
	require.Error(t, err)
	hosts.Eventually(t, "no process is left", func() (string, bool) {
		left, err := s.run("pgrep", "--full", "lockfs (server|guard)")
		return left, err != nil
	})
	s.must(t, "systemctl", "start", "lockfs")
	s.must(t, "touch", "/locks/again")
}
