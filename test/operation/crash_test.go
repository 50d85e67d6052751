package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// unattended is how a mount is started whose guard starts another process should it be killed.
func unattended(t testing.TB, c *testcluster.Cluster, h *hosts.Host) *hosts.Process {
	t.Helper()
	args := append([]string{"LOCKFS_UNATTENDED=1", c.Program, "mount", c.Mount}, c.MountFlags(t, h.Name(), c.Servers())...)
	p := h.Start("env", args...)
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.Mount))
	return p
}

// processes are those of a host whose command lines match, as it sees them.
func processes(h *hosts.Host, pattern string) []string {
	found, _ := h.Run("pgrep", "--ns", "1", "--nslist", "pid", "-f", pattern)
	return strings.Fields(found)
}

const (
	mountProcess = "^[^ ]*lockfs mount "
	guardProcess = "^lockfs guard "
)

// killMount kills the process of the mount of a host.
func killMount(t testing.TB, h *hosts.Host) {
	t.Helper()
	found := processes(h, mountProcess)
	require.Len(t, found, 1)
	h.MustRun(t, "kill", "-9", found[0])
}

// TestMountIsKilled kills the process of a mount again and again, under programs that use it, one of which sees it in another mount
// namespace. Calls that change something may fail while they are under way. Nothing else does: what is open and locked stays so, and
// who waits for a lock gets it.
func TestMountIsKilled(t *testing.T) {
	t.Parallel()
	kills := testcluster.Rounds(4, 100)
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	p := unattended(t, c, h)
	before := c.Nodes[0].AwaitSession(t, "m", "a session", testcluster.OneSession)
	h.MustRun(t, "mkdir", c.Path("below"))
	client := testcluster.ClientPath(t, "unnoticed.py")
	outside := startUser(t, h, "python3", client, c.Mount, "killed")
	inside := startUser(t, h, "unshare", "--mount", "sh", "-ec", `mount --bind "$1" /mnt; exec python3 "$2" /mnt killed`, "sh", c.Path("below"), client)
	h.MustRun(t, "sh", "-c", "set -C; echo held > "+c.Path("mine"))
	for n := range kills {
		began := time.Now()
		killMount(t, h)
		awaitUpgrade(t, p, n+1)
		h.MustRun(t, "touch", c.Path(fmt.Sprint("between", n))) // it works before the next one
		for _, name := range []string{"held", "below/held"} {
			_, err := c.Nodes[0].Host.Run("flock", "--nonblock", c.Path(name), "true")
			require.Error(t, err, "%s is locked after it was killed %d times", name, n+1)
		}
		_, err := h.Run("sh", "-c", "set -C; echo stolen > "+c.Path("mine"))
		require.ErrorContains(t, err, "exist", "taken twice")
		pauseAfterKill(began)
	}
	for _, u := range []user{outside, inside} {
		u.requireUnnoticed(t)
	}
	require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount))
	after := c.Nodes[0].AwaitSession(t, "m", "one session", testcluster.OneSession)
	require.Equal(t, before[0].ID, after[0].ID, "it was never lost")
	for _, name := range []string{"held", "below/held", "contended", "below/contended", "record", "below/record"} {
		c.Nodes[0].Host.MustRun(t, "flock", "--nonblock", c.Path(name), "true")
		_, err := c.Nodes[0].Host.Run("python3", "-c", "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)", c.Path(name))
		require.NoError(t, err, "%s: a lock is left that nobody has", name)
	}
	found := processes(h, mountProcess)
	require.Len(t, found, 1)
	h.MustRun(t, "kill", found[0])
	c.Nodes[0].AwaitSession(t, "m", "the session ends with the mount", testcluster.NoSession)
	require.Zero(t, testcluster.CountMounts(t, h, c.Mount))
	hosts.Eventually(t, "nothing is started any more", func() (string, bool) {
		left := append(processes(h, mountProcess), processes(h, guardProcess)...)
		return fmt.Sprint(left), len(left) == 0
	})
}

// pauseAfterKill keeps kills so far apart that nobody takes them for a mount that cannot be served, if there are many.
func pauseAfterKill(began time.Time) {
	if testcluster.Long() {
		time.Sleep(time.Until(began.Add(3200 * time.Millisecond)))
	}
}

// supervised starts a mount as a supervisor such as systemd does, which starts another process after a kill. It does not wait for the mount.
func supervised(t testing.TB, c *testcluster.Cluster, h *hosts.Host) *hosts.Process {
	t.Helper()
	args := append([]string{"LOCKFS_SUPERVISED=1", c.Program, "mount", c.Mount}, c.MountFlags(t, h.Name(), c.Servers())...)
	return h.Start("env", args...)
}

// TestSupervisedMountIsKilled has another process started by somebody else, as supervisors do, which goes on with what the guard keeps.
func TestSupervisedMountIsKilled(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	start := func() *hosts.Process { return supervised(t, c, h) }
	p := start()
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.Mount))
	u := startUser(t, h, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount, "killed")
	for range testcluster.Rounds(2, 30) {
		began := time.Now()
		p.Kill()
		p = start()
		require.NoError(t, p.WaitOutput(goneOn))
		_, err := c.Nodes[0].Host.Run("flock", "--nonblock", c.Path("held"), "true")
		require.Error(t, err)
		pauseAfterKill(began)
	}
	u.requireUnnoticed(t)
	require.NoError(t, p.Stop())
	hosts.Eventually(t, "the guard ends too", func() (string, bool) {
		left := processes(h, guardProcess)
		return fmt.Sprint(left), len(left) == 0
	})
	require.Empty(t, h.MustRun(t, "ls", "/run/lockfs"), "session files, and the socket of the guard")
}

// guardIntruder connects to each socket of a guard and tries to take its name, as any user may try on each host.
const guardIntruder = `
import glob, os, socket
abstract = [line.split()[7] for line in open("/proc/net/unix") if "@" in line and "lockfs" in line]
assert not abstract, abstract
paths = glob.glob("/run/lockfs/guard-*")
assert paths
for path in paths:
    for attempt in (lambda s: s.connect(path), lambda s: s.bind(path + ".new")):
        try:
            attempt(socket.socket(socket.AF_UNIX))
        except PermissionError:
            continue
        raise Exception("done: " + path)
    try:
        os.remove(path)
    except PermissionError:
        continue
    raise Exception("removed: " + path)
`

// TestNoOtherUserReachesTheGuard of a mount, or takes the name of its socket. A socket that is left of a killed guard is replaced.
func TestNoOtherUserReachesTheGuard(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	start := func() *hosts.Process { return supervised(t, c, h) }
	p := start()
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.Mount))
	intrude := func() {
		t.Helper()
		h.MustRun(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c", guardIntruder)
	}
	intrude()
	p.Kill()
	intrude() // while the guard waits for the next process
	p = start()
	require.NoError(t, p.WaitOutput(goneOn))

	h.MustRun(t, "pkill", "-9", "-f", mountProcess+"|"+guardProcess)
	require.Error(t, p.Wait())
	hosts.Eventually(t, "no guard is left", func() (string, bool) {
		left := processes(h, guardProcess)
		return fmt.Sprint(left), len(left) == 0
	})
	require.NotEmpty(t, h.MustRun(t, "find", "/run/lockfs", "-name", "guard-*"))
	p = start()
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.Mount))
	p.Kill()
	p = start()
	require.NoError(t, p.WaitOutput(goneOn))
	require.Equal(t, "600\n", h.MustRun(t, "sh", "-c", "stat -c %a /run/lockfs/guard-*"))
	require.NoError(t, p.Stop())
}

// TestTheGuardOfAUsersMountIsInTheUsersDirectory for sockets, which no other user can enter. The user's next process takes over the mount.
func TestTheGuardOfAUsersMountIsInTheUsersDirectory(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 1)
	h := c.AddClient(t, "m")
	program := installFor(t, h, "nobody")
	h.MustRun(t, "sh", "-ec", "mkdir -m 700 /mnt/run; chown nobody: /mnt/run")
	start := func() *hosts.Process {
		command := append(asUser(t, "nobody"), "XDG_RUNTIME_DIR=/mnt/run", "LOCKFS_SUPERVISED=1",
			program, "mount", "--servers", c.Servers(), "--insecure", "/mnt/locks")
		return h.Start(command[0], command[1:]...)
	}
	p := start()
	require.NoError(t, p.WaitOutput("lockfs: ready at /mnt/locks"))
	socket := strings.TrimSpace(h.MustRun(t, "sh", "-c", "echo /mnt/run/lockfs/guard-*"))
	require.Equal(t, "600 65534\n", h.MustRun(t, "stat", "--format", "%a %u", socket))
	require.Equal(t, "700 65534\n", h.MustRun(t, "stat", "--format", "%a %u", filepath.Dir(socket)))
	p.Kill()
	p = start()
	require.NoError(t, p.WaitOutput(goneOn))
	require.NoError(t, p.Stop())
}

// TestServerIsKilled kills a server with a mount, which has a majority without it, and starts it as systemd does.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	c, n := supervisedServer(t)
	u := startUser(t, n.Host, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount, "killed")
	for range testcluster.Rounds(2, 30) {
		began := time.Now()
		n.Kill()
		n.Launch()
		require.NoError(t, n.Server.WaitOutput(goneOn))
		_, err := c.Nodes[0].Host.Run("flock", "--nonblock", c.Path("held"), "true")
		require.Error(t, err)
		pauseAfterKill(began)
	}
	u.requireUnnoticed(t)
	journals := func() string {
		return n.Host.MustRun(t, "find", "/run/lockfs", n.Data, "-type", "f", "-name", "*.session*")
	}
	require.Regexp(t, `\A/run/lockfs/\S+\n?\z`, journals(), "nothing that has to be known is on a disk that may have failed")
	require.NoError(t, n.Server.Stop())
	require.Empty(t, journals())
}

// supervisedServer is one of three, which is started as systemd does.
func supervisedServer(t testing.TB) (*testcluster.Cluster, *testcluster.Node) {
	t.Helper()
	c := testcluster.NewCluster(t)
	for range 3 {
		n := c.Add(t)
		n.Environment = []string{"NOTIFY_SOCKET=/run/no-such-socket"}
		n.Start(t)
	}
	return c, c.Nodes[2]
}

// awaitLettingGo asks a server to execute its program anew, and waits until it has let go of its mount.
func awaitLettingGo(t testing.TB, n *testcluster.Node) {
	t.Helper()
	const letGo = "the mount is handed over"
	before := strings.Count(n.Server.Log(), letGo)
	n.Server.Signal(syscall.SIGHUP)
	hosts.Eventually(t, "the old program lets go", func() (string, bool) {
		return n.Server.Log(), strings.Count(n.Server.Log(), letGo) > before
	})
}

// TestServerIsKilledInAnUpgrade kills a server after the old program has let go of the mount: before the new one has it, while it has it and
// goes on through others, and when it is a server again.
func TestServerIsKilledInAnUpgrade(t *testing.T) {
	t.Parallel()
	c, n := supervisedServer(t)
	u := startUser(t, n.Host, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount, "killed")
	for round := range testcluster.Rounds(3, 30) {
		began := time.Now()
		awaitLettingGo(t, n)
		time.Sleep(time.Duration(round%8) * 50 * time.Millisecond)
		n.Kill()
		n.Launch()
		n.AwaitReady(t)
		n.Host.MustRun(t, "touch", c.Path(fmt.Sprint("between", round)))
		_, err := c.Nodes[0].Host.Run("flock", "--nonblock", c.Path("held"), "true")
		require.Error(t, err)
		pauseAfterKill(began)
	}
	u.requireUnnoticed(t)
}

// awaitOtherServers waits until a server of three has written down where its mount finds the others.
func awaitOtherServers(t testing.TB, n *testcluster.Node) {
	t.Helper()
	hosts.Eventually(t, "the other servers are written down", func() (string, bool) {
		content, err := os.ReadFile(filepath.Join(n.Data, "mount.servers"))
		return fmt.Sprintf("%q %v", content, err), len(strings.Fields(string(content))) == 2
	})
}

// TestServerThatCannotStartServesItsMount has a server's data directory not be opened after an upgrade, after another one, and after a kill, and
// somebody else have its port after another kill. The mount goes on through the others each time, and turns to the server once that can be
// started.
func TestServerThatCannotStartServesItsMount(t *testing.T) {
	t.Parallel()
	c, n := supervisedServer(t)
	u := startUser(t, n.Host, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount, "killed")
	awaitOtherServers(t, n)
	const broken = "this server does not start; its mount runs through other servers"
	identity := filepath.Join(n.Data, "node.json")
	hidden := n.Data + "-identity"
	n.Host.MustRun(t, "mv", identity, hidden)
	awaitLettingGo(t, n)
	require.NoError(t, n.Server.WaitOutput(goneOn))
	require.NoError(t, n.Server.WaitOutput(broken))
	n.Host.MustRun(t, "touch", c.Path("through others"))
	awaitUpgrade(t, n.Server, 1)
	n.Server.Signal(syscall.SIGHUP)
	awaitUpgrade(t, n.Server, 2)
	n.Host.MustRun(t, "touch", c.Path("through others again"))

	n.Kill()
	n.Launch()
	require.NoError(t, n.Server.WaitOutput(goneOn))
	require.NoError(t, n.Server.WaitOutput(broken))
	n.Host.MustRun(t, "touch", c.Path("after a kill"))
	_, err := c.Nodes[0].Host.Run("flock", "--nonblock", c.Path("held"), "true")
	require.Error(t, err)

	n.Host.MustRun(t, "mv", hidden, identity)
	n.AwaitReady(t)
	n.Host.MustRun(t, "touch", c.Path("through its own"))

	n.Kill()
	occupant, err := n.Host.Listen(n.Addr())
	require.NoError(t, err)
	defer func() { _ = occupant.Close() }()
	n.Launch()
	require.NoError(t, n.Server.WaitOutput(goneOn))
	require.NoError(t, n.Server.WaitOutput(broken))
	require.NoError(t, n.Server.WaitOutput("address already in use"))
	n.Host.MustRun(t, "touch", c.Path("while somebody has the port"))
	require.NoError(t, occupant.Close())
	n.AwaitReady(t)
	n.Host.MustRun(t, "touch", c.Path("through its own again"))
	u.requireUnnoticed(t)
	n.Stop(t)
	c.Nodes[0].AwaitSession(t, n.Name, "the session ends with the mount", testcluster.NoSession)
}

// TestServerThatIsCutOffIsToldToEnd while it goes on with its mount and nobody answers: it does not wait for that.
func TestServerThatIsCutOffIsToldToEnd(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t, "--op-timeout", "10m")
	for range 3 {
		n := c.Add(t)
		n.Environment = []string{"NOTIFY_SOCKET=/run/no-such-socket"}
		n.Start(t)
	}
	n := c.Nodes[2]
	awaitOtherServers(t, n)
	for _, other := range c.Nodes[:2] {
		other.Server.Signal(syscall.SIGSTOP)
	}
	t.Cleanup(func() {
		for _, other := range c.Nodes[:2] {
			other.Server.Signal(syscall.SIGCONT)
		}
	})
	n.Kill()
	n.Launch()
	require.NoError(t, n.Server.WaitOutput("entering follower state"))
	n.Stop(t)
	hosts.Eventually(t, "the mount has ended", func() (string, bool) {
		mounts := testcluster.CountMounts(t, n.Host, c.Mount)
		return fmt.Sprint(mounts, " mounts"), mounts == 0
	})
}

// TestServerIsToldToEndInAnUpgrade ends whichever program is there just then, and the mount with it. One that has begun this very moment is
// killed by that, as it cannot know yet what to do, and its guard ends the mount.
func TestServerIsToldToEndInAnUpgrade(t *testing.T) {
	t.Parallel()
	c, n := supervisedServer(t)
	for round := range testcluster.Rounds(4, 20) {
		awaitLettingGo(t, n)
		time.Sleep(time.Duration(round%10) * 30 * time.Millisecond)
		n.Server.Signal(syscall.SIGTERM)
		if err := n.Server.Wait(); err != nil {
			require.ErrorContains(t, err, "signal: terminated", "%s", n.Server.Log())
		}
		hosts.Eventually(t, "the mount has ended", func() (string, bool) {
			mounts := testcluster.CountMounts(t, n.Host, c.Mount)
			return fmt.Sprint(mounts, " mounts in round ", round), mounts == 0
		})
		c.Nodes[0].AwaitSession(t, n.Name, "the session ends with the mount", testcluster.NoSession)
		n.Start(t)
	}
}

// TestMountThatCannotGoOn ends once its processes are killed again and again, and can be mounted anew.
func TestMountThatCannotGoOn(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	unattended(t, c, h)
	h.MustRun(t, "sh", "-c", `
		none=0 # times in a row: one that begins may be missed
		while [ $none -lt 10 ]; do
			none=$((none + 1))
			[ -z "$(pgrep --ns 1 --nslist pid -f "$1|$2")" ] || none=0
			kill -9 $(pgrep --ns 1 --nslist pid -f "$1")
			sleep 0.01
		done`, "sh", mountProcess, guardProcess)
	c.AwaitDeadMount(t, h)
	hosts.Eventually(t, "nobody goes on", func() (string, bool) {
		left := append(processes(h, mountProcess), processes(h, guardProcess)...)
		return fmt.Sprint(left), len(left) == 0
	})
	p := unattended(t, c, h)
	testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
	h.MustRun(t, "kill", processes(h, mountProcess)[0])
	require.NoError(t, p.Wait())
}

// TestGuardIsKilled has another one started, which is as good.
func TestGuardIsKilled(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	p := unattended(t, c, h)
	u := startUser(t, h, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount, "killed")
	for n := range 2 {
		var before []string
		hosts.Eventually(t, "one guard", func() (string, bool) { // the one of the process before ends once there is another
			before = processes(h, guardProcess)
			return fmt.Sprint(before), len(before) == 1
		})
		h.MustRun(t, "kill", "-9", before[0])
		hosts.Eventually(t, "another guard", func() (string, bool) {
			now := processes(h, guardProcess)
			return fmt.Sprint(now), len(now) == 1 && now[0] != before[0]
		})
		killMount(t, h)
		awaitUpgrade(t, p, n+1)
	}
	u.requireUnnoticed(t)
	h.MustRun(t, "kill", processes(h, mountProcess)[0])
}

// TestUpgradedMountIsKilled upgrades a mount between kills.
func TestUpgradedMountIsKilled(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	p := unattended(t, c, h)
	u := startUser(t, h, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount, "killed")
	for n := range 3 {
		h.MustRun(t, "kill", "-HUP", processes(h, mountProcess)[0])
		awaitUpgrade(t, p, 2*n+1)
		killMount(t, h)
		awaitUpgrade(t, p, 2*n+2)
	}
	u.requireUnnoticed(t)
	h.MustRun(t, "kill", processes(h, mountProcess)[0])
}

// TestMountIsKilledInAnUpgrade kills the process of a mount after the old program has let go of it, and before the new one serves it.
func TestMountIsKilledInAnUpgrade(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	p := unattended(t, c, h)
	u := startUser(t, h, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount, "killed")
	for n := range testcluster.Rounds(2, 40) {
		began, went := time.Now(), strings.Count(p.Log(), goneOn)
		found := processes(h, mountProcess)
		require.Len(t, found, 1)
		h.MustRun(t, "kill", "-HUP", found[0])
		hosts.Eventually(t, "the old program has let go", func() (string, bool) {
			return p.Log(), strings.Count(p.Log(), "the mount is handed over") > n
		})
		time.Sleep(time.Duration(n%8) * 10 * time.Millisecond)
		h.MustRun(t, "kill", "-9", found[0])
		hosts.Eventually(t, "another process goes on", func() (string, bool) {
			now := processes(h, mountProcess)
			return fmt.Sprint(now), len(now) == 1 && now[0] != found[0] && strings.Count(p.Log(), goneOn) > went
		})
		h.MustRun(t, "touch", c.Path(fmt.Sprint("between", n))) // it serves: what was said may be the killed one's
		_, err := c.Nodes[0].Host.Run("flock", "--nonblock", c.Path("held"), "true")
		require.Error(t, err)
		pauseAfterKill(began)
	}
	u.requireUnnoticed(t)
	require.Len(t, processes(h, guardProcess), 1)
	h.MustRun(t, "kill", processes(h, mountProcess)[0])
	hosts.Eventually(t, "nobody goes on", func() (string, bool) {
		left := append(processes(h, mountProcess), processes(h, guardProcess)...)
		return fmt.Sprint(left), len(left) == 0
	})
}

// TestMountIsToldToEndInAnUpgrade ends whichever program is there just then, and the mount with it.
func TestMountIsToldToEndInAnUpgrade(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	for n := range testcluster.Rounds(3, 30) {
		p := unattended(t, c, h)
		found := processes(h, mountProcess)
		require.Len(t, found, 1)
		h.MustRun(t, "kill", "-HUP", found[0])
		hosts.Eventually(t, "the old program lets go", func() (string, bool) {
			return p.Log(), strings.Contains(p.Log(), "the mount is handed over")
		})
		time.Sleep(time.Duration(n%10) * 20 * time.Millisecond)
		h.MustRun(t, "kill", found[0])
		hosts.Eventually(t, "the mount ends", func() (string, bool) {
			left := append(processes(h, mountProcess), processes(h, guardProcess)...)
			return fmt.Sprint(left, p.Log()), len(left) == 0
		})
		require.Zero(t, testcluster.CountMounts(t, h, c.Mount), "%d", n)
		c.Nodes[0].AwaitSession(t, "m", "the session ends with the mount", testcluster.NoSession)
	}
}

// TestMountIsToldToEndAsAProgramBegins sends a signal that ends to a program that has just begun to go on with a mount, and does not listen yet:
// the mount is over. One that is killed then is succeeded.
func TestMountIsToldToEndAsAProgramBegins(t *testing.T) {
	t.Parallel()
	for signal, goesOn := range map[string]bool{"TERM": false, "INT": false, "KILL": true} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			c := testcluster.StartCluster(t, 1)
			h := c.AddClient(t, "m")
			c.Program = c.Path("..", "lockfs")
			h.MustRun(t, "cp", testcluster.Program(t), c.Program)
			p := unattended(t, c, h)
			h.MustRun(t, "rm", c.Program)
			script := "#!/bin/sh\n[ \"$1\" = takes-over ] || kill -" + signal + " $$\n"
			require.NoError(t, os.WriteFile(c.Program, []byte(script), 0o755))
			h.MustRun(t, "kill", "-HUP", processes(h, mountProcess)[0])
			if goesOn {
				require.NoError(t, p.WaitOutput(goneOn))
				testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
				h.MustRun(t, "kill", processes(h, mountProcess)[0])
			}
			hosts.Eventually(t, "the mount ends", func() (string, bool) {
				left := append(processes(h, mountProcess), processes(h, guardProcess)...)
				return fmt.Sprint(left, p.Log()), len(left) == 0
			})
			require.Zero(t, testcluster.CountMounts(t, h, c.Mount))
			require.Equal(t, goesOn, strings.Contains(p.Log(), goneOn), p.Log())
		})
	}
}

// TestWhatWasSeenOutlivesAKill holds a program that has looked at a lock to that, and lets the owner of one remove it.
func TestWhatWasSeenOutlivesAKill(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	p := unattended(t, c, h)
	here, there := testcluster.StartShell(t, h, c.Mount), testcluster.StartShell(t, c.Nodes[0].Host, c.Mount)
	there.Must("set -C; date > lock; set +C")
	here.Must("cat lock > /dev/null")
	here.Must("(set -C; date > own.lock)")
	there.Must("cat lock > /dev/null; rm lock; set -C; echo new $(date) > lock; set +C")
	there.Must("set -C; date > opened.lock; set +C")
	here.Must("exec 7< opened.lock") // and is read only after the kill
	for n := range 2 {
		killMount(t, h)
		awaitUpgrade(t, p, n+1)
	}
	here.Fails("rm lock", "No such file or directory")
	require.Contains(t, there.Must("cat lock"), "new")
	here.Must("rm own.lock")
	here.Must("cat <&7 > /dev/null")
	there.Must("cat opened.lock > /dev/null; rm opened.lock; set -C; echo new > opened.lock; set +C")
	here.Fails("rm opened.lock", "No such file or directory")
	require.Equal(t, "new", strings.TrimSpace(there.Must("cat opened.lock")))
	h.MustRun(t, "kill", processes(h, mountProcess)[0])
}
