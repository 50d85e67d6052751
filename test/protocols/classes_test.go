package protocols

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// startNamed starts a cluster of one server and four mounts on hosts whose names are long enough to stand in a file. Each
// host has pids of its own range, so that temporary files with a pid in their name do not meet.
func startNamed(t *testing.T) (c *testcluster.Cluster, named []*hosts.Host) {
	t.Helper()
	c = testcluster.StartCluster(t, 1)
	for i := range 4 {
		g := c.AddGuest(t, fmt.Sprintf("web%d", i+1))
		g.Start(t)
		g.Host.MustRun(t, "sh", "-c", fmt.Sprintf("echo %d >/proc/sys/kernel/ns_last_pid", 5000*(i+1)))
		named = append(named, g.Host)
	}
	return c, named
}

// inDir runs a line of shell on a host, in the directory of the mount.
func inDir(c *testcluster.Cluster, h *hosts.Host, line string) (string, error) {
	return h.Run("sh", "-c", "exec 2>&1; cd "+c.Mount+"; "+line)
}

// mustInDir is inDir for a line that has to succeed.
func mustInDir(t *testing.T, c *testcluster.Cluster, h *hosts.Host, line string) string {
	t.Helper()
	output, err := inDir(c, h, line)
	require.NoError(t, err, "%s on %s: %s", line, h.Name(), output)
	return output
}

// TestDataWithAHostsNameIsNoLock: programs that create exclusively replace such files from every host.
func TestDataWithAHostsNameIsNoLock(t *testing.T) {
	t.Parallel()
	c, on := startNamed(t)
	events := len(c.Nodes[0].Events(t))

	t.Run("install", func(t *testing.T) {
		for range 3 {
			for _, h := range on {
				mustInDir(t, c, h, `echo "server = $(hostname)" >x-$(hostname); install -m 644 x-$(hostname) f; cmp x-$(hostname) f`)
			}
		}
	})
	t.Run("ssh-keygen -R", func(t *testing.T) {
		mustInDir(t, c, on[0], `ssh-keygen -q -t ed25519 -N "" -f /run/key
			for h in web1 web2 web3 web4; do for i in 1 2 3; do echo "$h.$i $(cut -d" " -f1,2 /run/key.pub)"; done; done >known_hosts`)
		for i := range 3 {
			for _, h := range on {
				mustInDir(t, c, h, fmt.Sprintf(`ssh-keygen -R $(hostname).%d -f known_hosts && ! grep -q $(hostname).%d known_hosts`, i+1, i+1))
			}
		}
	})
	t.Run("a line of a shared log", func(t *testing.T) {
		for _, h := range on {
			mustInDir(t, c, h, `(set -C; echo "$(hostname) nightly: started as $$" >log) 2>/dev/null || echo "$(hostname) nightly: started as $$" >>log`)
		}
		for _, h := range on {
			why := mustInDir(t, c, h, "cat .lockfs/why/log")
			require.Contains(t, why, "\nlock: no: ")
			require.NotContains(t, why, "\nstate: ")
			mustInDir(t, c, h, "echo again >log; mv log log.1; echo new >log; rm log; cp log.1 log")
		}
	})
	t.Run("the names are in no listing and have no events", func(t *testing.T) {
		listed := mustInDir(t, c, on[0], "cat .lockfs/locks")
		for _, name := range []string{" f\n", " x-web1\n", " known_hosts\n", " log\n"} {
			require.NotContains(t, listed, name)
		}
		for _, e := range c.Nodes[0].Events(t)[events:] {
			require.Empty(t, e.Path, "%+v", e)
		}
	})
}

// TestALockWithAnyContent has scripts write a word, in place of a pid, to names that say lock or do not.
func TestALockWithAnyContent(t *testing.T) {
	t.Parallel()
	c, on := startNamed(t)
	a, h, other := c.Nodes[0], on[0], on[1]
	require.NoError(t, os.Chmod(filepath.Dir(c.Net.Dir()), 0o755)) // other users look at the mount too
	other.MustRun(t, "install", "-m", "755", c.Program, "/run/program")

	mustInDir(t, c, h, "set -C; echo taken >a.lock")
	for _, on := range []*hosts.Host{h, other} {
		why := mustInDir(t, c, on, "cat .lockfs/why/a.lock")
		require.Contains(t, why, "\nlock: yes: it was created exclusively, ")
		require.Contains(t, why, "\nstate: held\n")
		require.Contains(t, why, " on host web1\n", "its maker")
		require.Regexp(t, `(?m)^held none \d+ - web1 - \d+ a\.lock$`, mustInDir(t, c, on, "cat .lockfs/locks"))
		require.NotZero(t, c.Token(t, on, "a.lock"))
		_, err := inDir(c, on, "set -C; echo taken >a.lock")
		require.Error(t, err)
	}
	listed, err := a.Lockfs("locks")
	require.NoError(t, err)
	require.Contains(t, listed, "a.lock")
	mustInDir(t, c, other, "rm a.lock")
	require.Equal(t, []string{"lock_acquired", "lock_released"}, testcluster.Story(a.Events(t), "a.lock"))

	mustInDir(t, c, h, "mkdir plain; mkdir x.lock; set -C; echo result >report")
	listing := mustInDir(t, c, other, "cat .lockfs/locks")
	require.Contains(t, listing, " x.lock\n")
	require.NotContains(t, listing, " plain\n")
	require.NotContains(t, listing, " report\n")
	require.Contains(t, mustInDir(t, c, other, "cat .lockfs/why/x.lock"), "\nlock: yes: ")
	for _, name := range []string{"plain", "report"} {
		why := mustInDir(t, c, other, "cat .lockfs/why/"+name)
		require.Contains(t, why, "\nlock: no: it was created exclusively")
		require.NotContains(t, why, "\nstate: ")
		require.Contains(t, why, " on host web1\n", "its maker")
		require.NotZero(t, c.Token(t, other, name))

		// The name alone is shown with its token, to root and to others, and not in the list of all locks.
		shown := fmt.Sprintf(`(?m)^%s +exclusive +none +on web1 +%d +\d+s +never *$`, name, c.Token(t, other, name))
		listed, err := a.Lockfs("locks", c.Path(name))
		require.NoError(t, err)
		require.Regexp(t, shown, listed)
		listed, err = other.Run("setpriv", "--reuid", "65534", "--clear-groups", "/run/program", "locks", c.Path(name))
		require.NoError(t, err)
		require.Regexp(t, shown, listed)
		listed, err = a.Lockfs("locks")
		require.NoError(t, err)
		require.NotContains(t, listed, name)
	}
	require.Empty(t, testcluster.Story(a.Events(t), "plain"))
	require.Empty(t, testcluster.Story(a.Events(t), "report"))
	mustInDir(t, c, h, "echo data >data")
	listed, err = a.Lockfs("locks", c.Path("data"))
	require.NoError(t, err)
	require.NotContains(t, listed, "exclusive")
}

// TestPidsWithOtherBytesAreGuarded: shadow-utils write a NUL byte behind the pid and link the file to its name, Twisted links a
// symbolic link to a pid.
func TestPidsWithOtherBytesAreGuarded(t *testing.T) {
	t.Parallel()
	c, on := startNamed(t)
	for name, take := range map[string]string{
		"shadow":  `printf "$$\0" >t; ln t shadow; rm t`,
		"twisted": "ln -s $$ twisted",
		"plain":   "set -C; echo $$ >plain; set +C",
	} {
		holder := testcluster.StartShell(t, on[0], c.Mount)
		holder.Must(take)
		for _, h := range on[1:] {
			for _, remove := range []string{"rm ", "mv -T " + name + ".new ", "mv "} {
				line := remove + name
				switch remove {
				case "mv ":
					line += " away"
				case "rm ":
				default:
					line = "echo new >" + name + ".new; " + line
				}
				_, err := inDir(c, h, line)
				require.ErrorContains(t, err, "Device or resource busy", "%s on %s", line, h.Name())
			}
		}
		c.RequireHeld(t, name, on...)
		holder.Process.Kill()
		c.AwaitGone(t, name, on...)
	}
}

// TestUseraddOnFourHosts adds users to one set of files at the same time. Each one that was added is there.
func TestUseraddOnFourHosts(t *testing.T) {
	t.Parallel()
	c, on := startNamed(t)
	mustInDir(t, c, on[0], `mkdir -p root/etc/default && cd root/etc && touch shadow group gshadow subuid subgid && chmod 640 shadow gshadow &&
		echo "root:x:0:0:root:/root:/bin/sh" >passwd && echo "root:x:0:" >group && cp /etc/login.defs . && : >default/useradd`)
	const times = 3
	outputs := make(chan error)
	for _, h := range on {
		go func() {
			var first error
			for i := range times {
				// useradd gives up after 15 s.
				output, err := inDir(c, h, fmt.Sprintf(`for try in 1 2 3 4 5 6 7 8; do
					/usr/sbin/useradd --prefix $PWD/root --no-create-home $(hostname)-%d && exit 0; done; exit 1`, i))
				if err != nil && first == nil {
					first = fmt.Errorf("%s: %w: %s", h.Name(), err, output)
				}
			}
			outputs <- first
		}()
	}
	for range on {
		require.NoError(t, <-outputs)
	}
	for _, h := range on {
		users := mustInDir(t, c, h, "cut -d: -f1 root/etc/passwd")
		shadow := mustInDir(t, c, h, "cut -d: -f1 root/etc/shadow")
		for _, added := range on {
			for i := range times {
				name := fmt.Sprintf("%s-%d\n", added.Name(), i)
				assert.Contains(t, users, name)
				assert.Contains(t, shadow, name)
			}
		}
		require.Empty(t, mustInDir(t, c, h, "ls root/etc | grep lock || :"))
	}
}

// dependencyFiles are data with names like locks; %s is a directory. Each is a step for Python.
var dependencyFiles = map[string]string{
	"yarn.lock":  `open("%s/yarn.lock", "x").write("# yarn lockfile v1\n\nleft-pad@^1.3.0:\n  version \"1.3.0\"\n")`,
	"other.lock": `open("%s/other.lock", "x").write("left-pad 1.3.0\n")`,
	"Cargo.lock": `open("%[1]s/new", "w").write("version = 3\n" * 20); os.rename("%[1]s/new", "%[1]s/Cargo.lock")`,
}

// TestARuleThatRemovesLeavesDataAlone, whatever the names of the data, unless the rule has --any-file.
func TestARuleThatRemovesLeavesDataAlone(t *testing.T) {
	t.Parallel()
	c, on := startNamed(t)
	a, h := c.Nodes[0], on[0]
	write := func(dir string) {
		mustInDir(t, c, h, "mkdir "+dir)
		for _, step := range dependencyFiles {
			writer := testcluster.StartPython(t, h, c.Mount)
			writer.Must(fmt.Sprintf(step, dir))
			writer.Process.Kill()
		}
	}
	requireData := func(dir string) {
		t.Helper()
		for name := range dependencyFiles {
			mustInDir(t, c, on[1], "test -s "+dir+"/"+name)
		}
	}

	t.Run("--holder creator", func(t *testing.T) {
		a.SetRule(t, "proj/*.lock", "--holder", "creator")
		write("proj")
		holder := testcluster.StartPython(t, h, c.Mount)
		holder.Must(fmt.Sprintf(createdLocks["empty"], "proj/job.lock"))
		c.RequireHeld(t, "proj/job.lock", on...)
		holder.Process.Kill()
		c.AwaitGone(t, "proj/job.lock", on...) // this host reports ends in order
		requireData("proj")
	})

	t.Run("--stale-after", func(t *testing.T) {
		write("old")
		holder := testcluster.StartPython(t, h, c.Mount)
		holder.Must(fmt.Sprintf(createdLocks["empty"], "old/job.lock"))
		mustInDir(t, c, h, `for f in old/*; do touch -d "1 hour ago" $f; done`)
		said, err := a.Lockfs("rule", "set", "old/*.lock", "--stale-after", "10m", "--on-stale", "remove")
		require.ErrorContains(t, err, "--yes", said)
		for _, line := range []string{"old/job.lock is removed at once", "old/yarn.lock stays: it is data", "old/other.lock stays", "1 of these names"} {
			require.ErrorContains(t, err, line)
		}
		mustInDir(t, c, h, "test -e old/job.lock")
		rules, err := a.Lockfs("rule", "list")
		require.NoError(t, err)
		require.NotContains(t, rules, "old/")
		a.SetRule(t, "old/*.lock", "--stale-after", "10m", "--on-stale", "remove")
		c.AwaitGone(t, "old/job.lock", on...)
		requireData("old")
		_, err = a.Lockfs("rule", "set", "old/*.lock", "--stale-after", "10m", "--on-stale", "remove")
		require.NoError(t, err, "it has nothing removed any more")
	})

	t.Run("--any-file", func(t *testing.T) {
		mustInDir(t, c, h, `mkdir spool; echo data >spool/one; touch -d "1 hour ago" spool/one`)
		_, err := a.Lockfs("rule", "set", "spool/*", "--stale-after", "10m", "--on-stale", "remove", "--any-file")
		require.ErrorContains(t, err, "spool/one is removed at once")
		mustInDir(t, c, h, "test -s spool/one")
		a.SetRule(t, "spool/*", "--stale-after", "10m", "--on-stale", "remove", "--any-file")
		c.AwaitGone(t, "spool/one", on...)
		rules, err := a.Lockfs("rule", "list")
		require.NoError(t, err)
		require.Contains(t, rules, "any file")
		require.Equal(t, 1, strings.Count(rules, "any file"))
	})
}
