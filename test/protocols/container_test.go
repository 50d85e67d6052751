package protocols

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// contained is the command that runs another one in a container of a host: one with pids and a hostname of its own. It begins
// to count processes at another number than others do, which in itself tells nothing of where a process is.
func contained(name string, firstPid int, command ...string) []string {
	const begin = `hostname "$1"; echo "$2" > /proc/sys/kernel/ns_last_pid; shift 2; "$@"; exit $?`
	unshare := []string{"unshare", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child", "sh", "-c", begin, "sh", name}
	return append(append(unshare, fmt.Sprint(firstPid)), command...)
}

func startContained(t testing.TB, h *hosts.Host, dir, name string, firstPid int) *testcluster.Shell {
	t.Helper()
	return testcluster.StartSteps(t, h, dir, contained(name, firstPid, "bash", "-c", testcluster.BashSteps, "bash")...)
}

// TestContainers has two containers of one host, with one mount, that see nothing of each other's processes.
func TestContainers(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	a.SetRule(t, "*.lock", "--holder", "creator", "--any-file")
	outside := testcluster.StartShell(t, g.Host, c.Mount)
	other := startContained(t, g.Host, c.Mount, "other", 2000)
	const busy = "Device or resource busy"

	for _, kind := range []struct{ lock, take string }{
		{"pid", testcluster.PidContent + " > pid"},
		{"beads", testcluster.BeadsContent + " > beads"},
		{"empty.lock", "set -C; > empty.lock; set +C"},
		{"touched.lock", "touch touched.lock"},
		{"directory.lock", "mkdir directory.lock"},
		{"with-host.lock", "(set -C; hostname > with-host.lock)"},
	} {
		t.Run(kind.lock, func(t *testing.T) {
			take, isDir := kind.take, kind.lock == "directory.lock"
			first := startContained(t, g.Host, c.Mount, "first", 1000)
			first.Must("set -C; " + take + "; set +C")
			for _, s := range []*testcluster.Shell{other, testcluster.StartShell(t, a.Host, c.Mount)} {
				s.Fails("rm -d "+kind.lock, busy)
				s.Fails("mv "+kind.lock+" moved", busy)
				require.Contains(t, s.Must("cat .lockfs/why/"+kind.lock), "may be removed by: programs on host m that can see its process")
				if !isDir {
					s.Fails("echo > "+kind.lock, busy)
					s.Fails("truncate -s 1 "+kind.lock, busy)
					s.Fails("touch t; mv -f t "+kind.lock, busy)
				}
			}
			// Who sees its processes may.
			outside.Must("rm -d " + kind.lock)
			first.Must("set -C; " + take + "; set +C")
			first.Must("bash -c 'rm -d " + kind.lock + "'")

			// A container in it does not see it, and is seen from it.
			first.Must("set -C; " + take + "; set +C")
			const nested = "unshare --pid --fork --mount-proc --kill-child sh -c '%s; exit $?'"
			first.Fails(fmt.Sprintf(nested, "rm -d "+kind.lock), busy)
			first.Process.Kill()
			c.AwaitGone(t, kind.lock, a.Host, g.Host)
		})
	}

	t.Run("nested", func(t *testing.T) {
		first := startContained(t, g.Host, c.Mount, "first", 1000)
		first.Must(`unshare --pid --fork --mount-proc --kill-child sh -c 'true; set -C; echo $$ > nested; sleep 1000' & ` +
			`until [ -s nested ]; do sleep 0.1; done`)
		other.Fails("rm nested", busy)
		c.RequireHeld(t, "nested", a.Host)
		first.Must("rm nested")
	})
}
