package test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// TestLookThenRemove has a process look at a lock, another host put a new one in its place, and the process
// do to it what it wanted to do to the old one.
func TestLookThenRemove(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	g := c.addGuest(t, "m")
	g.start(t)
	here, there := g.host, startShell(t, c.nodes[0].host, c.mount)

	for _, look := range []struct{ what, bash, python string }{
		{"read", "cat lock > /dev/null", `open("lock").read()`},
		{"made", "(set -C; date > lock)", `open("lock", "x").write(__import__("time").ctime())`},
		{"nothing", "true", "pass"},
		{"stat", "stat lock > /dev/null; ls -l > /dev/null; [ -e lock ]", `os.stat("lock"); os.listdir()`},
	} {
		for _, change := range []struct{ what, bash, python, refusal string }{
			{"remove", "rm lock", `os.remove("lock")`, "No such file or directory"},
			{"rename over", "mv tmp lock", `os.rename("tmp", "lock")`, "Stale file handle"},
			{"rename away", "mv lock away", `os.rename("lock", "away")`, "No such file or directory"},
			{"truncate", "> lock", `open("lock", "w")`, "Stale file handle"},
		} {
			t.Run(look.what+" then "+change.what, func(t *testing.T) {
				steps := map[*shell][2]string{
					startShell(t, here, c.mount):  {look.bash, change.bash},
					startPython(t, here, c.mount): {look.python, change.python},
				}
				for s, step := range steps {
					there.must("cat away lock > /dev/null 2>&1; rm -f away lock; echo theirs > tmp")
					if look.what != "made" {
						there.must("set -C; date > lock; set +C")
					}
					s.must(step[0])
					there.must("cat lock > /dev/null; rm lock; set -C; echo new $(date) > lock; set +C")
					before := c.nodes[0].refusals(t)
					if look.what == "nothing" || look.what == "stat" {
						s.must(step[1])
						require.NotContains(t, there.must("cat lock 2>&1 || :"), "new")
						require.Equal(t, before, c.nodes[0].refusals(t))
						continue
					}
					s.fails(step[1], change.refusal)
					require.Contains(t, there.must("cat lock"), "new")
					require.Equal(t, "theirs\n", there.must("cat tmp"))
					require.Greater(t, c.nodes[0].refusals(t), before)
				}
			})
		}
	}

	t.Run("several", func(t *testing.T) {
		there.must("cat lock > /dev/null 2>&1; rm -f lock; set -C; date > lock; date > other; set +C")
		a, b := startShell(t, here, c.mount), startShell(t, here, c.mount)
		a.must("cat lock other")
		// What a process looked at is not what the next one looked at, nor what it looks at later.
		there.must("cat lock > /dev/null; rm lock; set -C; date > lock; set +C")
		b.must("cat lock")
		a.fails("rm lock", "No such file or directory")
		a.must("rm other")
		a.must("cat lock; rm lock")
		b.must("rm -f lock")
	})
}

// TestLookIntoALockDirectory is the same for a lock that is a directory with a file that tells its holder.
func TestLookIntoALockDirectory(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	g := c.addGuest(t, "m")
	g.start(t)
	for _, change := range []struct{ what, step string }{
		{"another holder", "rm -r lock; mkdir lock; echo $$ > lock/pid"},
		{"another, who has not told yet", "rm -r lock; mkdir lock"},
	} {
		for _, h := range []*hosts.Host{c.nodes[0].host, g.host} {
			holder, next, breaker := startShell(t, h, c.mount), startShell(t, h, c.mount), startShell(t, g.host, c.mount)
			holder.must("mkdir lock && echo $$ > lock/pid")
			breaker.must("cat lock/pid")
			next.must(change.step)
			made := next.must("ls -Ri lock")
			_, err := breaker.do("rm -r lock")
			require.Error(t, err, change.what)
			require.Equal(t, made, next.must("ls -Ri lock"), change.what)
			next.must("rm -r lock")
		}
	}
}
