package protocols

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// recipes are ways to take a lock named LOCK, in steps of a shell script.
var recipes = map[string]string{
	"noclobber":                 "set -C; echo $$ > LOCK; set +C",
	"noclobber, host and time":  "set -C; echo $(hostname) $$ $(date +%s) > LOCK; set +C",
	"noclobber, empty":          "set -C; > LOCK; set +C",
	"in two writes":             "set -C; { echo $$; hostname; } > LOCK; set +C",
	"link":                      "echo $$ > t.$$; ln t.$$ LOCK; rm t.$$",
	"link, exclusive temporary": "t=$(mktemp -p .); echo $$ > $t; ln $t LOCK; rm $t",
	"rename":                    "echo $$ > t.$$; mv t.$$ LOCK",
	"rename, noreplace":         "(set -C; echo $$ > t.$$); mv -n t.$$ LOCK",
	"mkdir":                     "mkdir LOCK",
	"mkdir and a file":          "mkdir LOCK; echo $$ > LOCK/pid",
	"mkdir, files":              "mkdir LOCK; echo $$ > LOCK/pid; hostname > LOCK/host",
	"mkdir elsewhere, rename":   "mkdir d.$$; echo $$ > d.$$/pid; mv d.$$ LOCK",
	"symbolic link":             "ln -s $(hostname):$$ LOCK",
	"semaphore":                 "set -C; " + testcluster.SemaphoreContent + " > LOCK; set +C",
	"beads":                     "set -C; " + testcluster.BeadsContent + " > LOCK; set +C",
	"semaphore, rename":         testcluster.SemaphoreContent + " > t.$$; mv t.$$ LOCK",
}

// TestOneAcquisitionIsOneEvent whatever calls it is made of.
func TestOneAcquisitionIsOneEvent(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	s := testcluster.StartShell(t, g.Host, c.Mount)
	for _, wait := range []bool{false, true} {
		for recipe, take := range recipes {
			lock := fmt.Sprintf("%x-%v.lock", recipe, wait)
			since := a.Events(t)
			s.Must(strings.ReplaceAll(take, "LOCK", lock))
			if wait {
				// Until the cluster tells of it by itself.
				hosts.Eventually(t, recipe, func() (string, bool) {
					now := a.Events(t)
					return "", len(now) > len(since)
				})
			}
			s.Must("rm -r " + lock)
			var told []string
			for _, e := range a.Events(t)[len(since):] {
				told = append(told, e.Event+" "+strings.ReplaceAll(e.Path, lock, "LOCK"))
			}
			acquired := 0
			for _, event := range told {
				if strings.HasPrefix(event, "lock_acquired") {
					acquired++
				}
			}
			require.Equal(t, 1, acquired, "%s: %q", recipe, told)
		}
	}
}

// TestWhySaysWhatARemovalIsTold compares what everybody can read of a lock with what rm says then.
func TestWhySaysWhatARemovalIsTold(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	a.SetRule(t, "*.made", "--holder", "creator", "--any-file")
	a.SetRule(t, "*.closed", "--guard", "host")
	a.SetRule(t, "*.open", "--guard", "anyone")
	s := testcluster.StartShell(t, g.Host, c.Mount)
	more := map[string]string{
		"data":               "echo $(hostname) 7 > LOCK",
		"pid, not exclusive": "echo $$ > LOCK",
		"pid, then data":     "(set -C; echo $$ > LOCK); echo it is data now > LOCK",
		"pid, emptied":       "(set -C; echo $$ > LOCK); > LOCK",
		"semaphore, emptied": "(set -C; " + testcluster.SemaphoreContent + " > LOCK); > LOCK",
		"semaphore, written": testcluster.SemaphoreContent + " > LOCK; " + testcluster.SemaphoreContent + " > LOCK",
		"half written":       "(set -C; printf pid= > LOCK)",
		"flock":              "flock LOCK true; echo $$ > LOCK",
		"invalid tower":      `(set -C; echo '{"lock_version":"v1","request_id":"an odd one"}' > LOCK)`,
	}
	for recipe, take := range recipes {
		more[recipe] = take
	}
	for kind, take := range more {
		for _, suffix := range []string{"", ".made", ".closed", ".open"} {
			lock := fmt.Sprintf("%x%s", kind, suffix)
			s.Must(strings.ReplaceAll(take, "LOCK", lock))
			for _, h := range []*hosts.Host{a.Host, g.Host} {
				why, err := h.Run("cat", c.Path(".lockfs/why", lock))
				if err != nil {
					// It tells of what is in a directory, or it is gone.
					require.Regexp(t, "Is a directory|No such file", err.Error(), kind+suffix)
					continue
				}
				_, err = h.Run("rm", "-d", c.Path(lock))
				remover, _, _ := strings.Cut(strings.SplitAfter(why+"may be removed by: ", "may be removed by: ")[1], "\n")
				switch {
				case remover == "anyone", strings.Contains(why, "lock: no"), h == g.Host && strings.HasPrefix(remover, "programs on host m"):
					if err != nil {
						require.ErrorContains(t, err, "No such file", "%s%s on %s:\n%s", kind, suffix, h.Name(), why)
					}
				default:
					require.ErrorContains(t, err, "Device or resource busy", "%s%s on %s:\n%s", kind, suffix, h.Name(), why)
				}
			}
			s.Must("rm -rf " + lock)
		}
	}
}

// TestPidFilesThatAreNotExclusive are shown as stale, and stay: their names may have been given to somebody to write to.
func TestPidFilesThatAreNotExclusive(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	daemon := testcluster.StartShell(t, g.Host, c.Mount)
	daemon.Must("echo $$ > daemon.pid; sleep 1000 & echo $! > child.pid; (set -C; echo $$ > lock)")
	c.RequireHeld(t, "daemon.pid", a.Host)
	c.RequireHeld(t, "child.pid", a.Host)
	_, err := a.Host.Run("rm", c.Path("daemon.pid"))
	require.ErrorContains(t, err, "Device or resource busy")
	daemon.Must("kill $!; wait $! || :")
	c.AwaitState(t, a.Host, "child.pid", "stale")
	daemon.Process.Kill()
	c.AwaitState(t, a.Host, "daemon.pid", "stale")
	require.Contains(t, a.Host.MustRun(t, "cat", c.Path(".lockfs/why/daemon.pid")), "may be removed by: anyone\n")
	c.AwaitGone(t, "lock", a.Host)
	next := testcluster.StartShell(t, a.Host, c.Mount)
	next.Must("echo $$ > daemon.pid; rm child.pid")
	c.RequireHeld(t, "daemon.pid", g.Host)
	next.Must("rm daemon.pid")
}

// TestDataIsNotGuarded, whatever several hosts do with it.
func TestDataIsNotGuarded(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	one, two := testcluster.StartShell(t, g.Host, c.Mount), testcluster.StartShell(t, c.Nodes[0].Host, c.Mount)
	before := c.Nodes[0].Refusals(t)
	for _, steps := range [][]string{
		{"echo 5 > t; mv t n", "echo 6 > u; mv u n", "cat n; echo 7 > n", "cat n; echo 8 > n", "rm n"},
		{"echo $(($(cat n 2>/dev/null || echo 1) + 1)) > n", "echo $(($(cat n) + 1)) > n", "echo 1 > n", "echo 0 > n", "[ $(cat n) = 0 ]; rm n"},
		{"ln -s a s; readlink s", "readlink s; rm s; ln -s b s", "rm s"},
		{"echo a > f; rm f", "echo b > f; rm f", "echo c > f", "cat f; echo d > f", "cat f; rm f"},
		{"(set -C; echo a > f); rm f", "(set -C; echo b > f)", "rm f"},
		{"echo a > f; ln f g; rm f", "rm g; echo b > f; ln f g", "rm g f"},
		{"echo msg > last; cat last", "rm last; echo again > last", "cat last; rm last; echo more > last", "rm last"},
		{"mkdir -p d/e; echo a > d/e/f; cat d/e/f", "rm d/e/f; echo b > d/e/f; echo c > d/e/g", "rm -rf d"},
		{"echo log > log; cat log", "mv log log.1; echo new > log", "mv log log.2", "rm log.1 log.2"},
	} {
		for i, step := range steps {
			s := []*testcluster.Shell{one, two}[i%2]
			_, err := s.Do(step)
			require.NoError(t, err, "%q", steps)
		}
		require.Empty(t, one.Must("ls -A"), "%q", steps)
	}
	require.Equal(t, before, c.Nodes[0].Refusals(t))
}

// TestOddTowerLocks say by their mark what they are, so that another host does not remove them while they live.
func TestOddTowerLocks(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	one := testcluster.StartShell(t, g.Host, c.Mount)
	for _, content := range []string{
		`{"lock_version":"v1","lock_name":"x","request_id":"an id; with $odd things","worker":"w","pid":1,"acquired_at":"2026-11-22T10:00:00Z","ttl_seconds":900}`,
		`{"lock_version":"v1"}`,
	} {
		one.Must("(set -C; echo '" + content + "' > tower)")
		two := testcluster.StartShell(t, c.Nodes[0].Host, c.Mount)
		two.Fails("rm tower", "Device or resource busy")
		two.Fails("echo > tower", "Device or resource busy")
		why := two.Must("cat .lockfs/why/tower")
		require.Contains(t, why, "format: tower")
		require.Contains(t, why, "invalid: ")
		c.RequireHeld(t, "tower", g.Host)
		one.Must("rm tower")
	}
}
