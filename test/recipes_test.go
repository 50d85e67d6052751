package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
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
	"semaphore":                 "set -C; " + semaphoreContent + " > LOCK; set +C",
	"beads":                     "set -C; " + beadsContent + " > LOCK; set +C",
	"semaphore, rename":         semaphoreContent + " > t.$$; mv t.$$ LOCK",
}

// TestOneAcquisitionIsOneEvent whatever calls it is made of.
func TestOneAcquisitionIsOneEvent(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a := c.nodes[0]
	g := c.addGuest(t, "m")
	g.start(t)
	s := startShell(t, g.host, c.mount)
	for _, wait := range []bool{false, true} {
		for recipe, take := range recipes {
			lock := fmt.Sprintf("%x-%v", recipe, wait)
			since := a.events(t)
			s.must(strings.ReplaceAll(take, "LOCK", lock))
			if wait {
				// Until the cluster tells of it by itself.
				hosts.Eventually(t, recipe, func() (string, bool) {
					now := a.events(t)
					return "", len(now) > len(since)
				})
			}
			s.must("rm -r " + lock)
			var told []string
			for _, e := range a.events(t)[len(since):] {
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
	c := startCluster(t, 1)
	a := c.nodes[0]
	g := c.addGuest(t, "m")
	g.start(t)
	a.set(t, "*.made", "--holder", "creator")
	a.set(t, "*.closed", "--guard", "host")
	a.set(t, "*.open", "--guard", "anyone")
	s := startShell(t, g.host, c.mount)
	more := map[string]string{
		"data":               "echo $(hostname) 7 > LOCK",
		"pid, not exclusive": "echo $$ > LOCK",
		"pid, then data":     "(set -C; echo $$ > LOCK); echo it is data now > LOCK",
		"pid, emptied":       "(set -C; echo $$ > LOCK); > LOCK",
		"semaphore, emptied": "(set -C; " + semaphoreContent + " > LOCK); > LOCK",
		"semaphore, written": semaphoreContent + " > LOCK; " + semaphoreContent + " > LOCK",
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
			s.must(strings.ReplaceAll(take, "LOCK", lock))
			for _, h := range []*hosts.Host{a.host, g.host} {
				why, err := h.Run("cat", c.path(".lockfs/why", lock))
				if err != nil {
					// It tells of what is in a directory, or it is gone.
					require.Regexp(t, "Is a directory|No such file", err.Error(), kind+suffix)
					continue
				}
				_, err = h.Run("rm", "-d", c.path(lock))
				remover, _, _ := strings.Cut(strings.SplitAfter(why+"may be removed by: ", "may be removed by: ")[1], "\n")
				switch {
				case remover == "anyone", h == g.host && strings.HasPrefix(remover, "programs on host m"):
					if err != nil {
						require.ErrorContains(t, err, "No such file", "%s%s on %s:\n%s", kind, suffix, h.Name(), why)
					}
				default:
					require.ErrorContains(t, err, "Device or resource busy", "%s%s on %s:\n%s", kind, suffix, h.Name(), why)
				}
			}
			s.must("rm -rf " + lock)
		}
	}
}

// TestPidFilesThatAreNotExclusive are shown as stale, and stay: their names may have been given to somebody to write to.
func TestPidFilesThatAreNotExclusive(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a := c.nodes[0]
	g := c.addGuest(t, "m")
	g.start(t)
	daemon := startShell(t, g.host, c.mount)
	daemon.must("echo $$ > daemon.pid; sleep 1000 & echo $! > child.pid; (set -C; echo $$ > lock)")
	c.requireHeld(t, "daemon.pid", a.host)
	c.requireHeld(t, "child.pid", a.host)
	_, err := a.host.Run("rm", c.path("daemon.pid"))
	require.ErrorContains(t, err, "Device or resource busy")
	daemon.must("kill $!; wait $! || :")
	c.awaitState(t, a.host, "child.pid", "stale")
	daemon.process.Kill()
	c.awaitState(t, a.host, "daemon.pid", "stale")
	require.Contains(t, a.host.MustRun(t, "cat", c.path(".lockfs/why/daemon.pid")), "may be removed by: anyone\n")
	c.awaitGone(t, "lock", a.host)
	next := startShell(t, a.host, c.mount)
	next.must("echo $$ > daemon.pid; rm child.pid")
	c.requireHeld(t, "daemon.pid", g.host)
	next.must("rm daemon.pid")
}

// TestDataIsNotGuarded, whatever several hosts do with it.
func TestDataIsNotGuarded(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	g := c.addGuest(t, "m")
	g.start(t)
	one, two := startShell(t, g.host, c.mount), startShell(t, c.nodes[0].host, c.mount)
	before := c.nodes[0].refusals(t)
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
			s := []*shell{one, two}[i%2]
			_, err := s.do(step)
			require.NoError(t, err, "%q", steps)
		}
		require.Empty(t, one.must("ls -A"), "%q", steps)
	}
	require.Equal(t, before, c.nodes[0].refusals(t))
}

// TestOddTowerLocks say by their mark what they are, so that another host does not remove them while they live.
func TestOddTowerLocks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	g := c.addGuest(t, "m")
	g.start(t)
	one := startShell(t, g.host, c.mount)
	for _, content := range []string{
		`{"lock_version":"v1","lock_name":"x","request_id":"an id; with $odd things","worker":"w","pid":1,"acquired_at":"2026-11-22T10:00:00Z","ttl_seconds":900}`,
		`{"lock_version":"v1"}`,
	} {
		one.must("(set -C; echo '" + content + "' > tower)")
		two := startShell(t, c.nodes[0].host, c.mount)
		two.fails("rm tower", "Device or resource busy")
		two.fails("echo > tower", "Device or resource busy")
		why := two.must("cat .lockfs/why/tower")
		require.Contains(t, why, "format: tower")
		require.Contains(t, why, "invalid: ")
		c.requireHeld(t, "tower", g.host)
		one.must("rm tower")
	}
}
