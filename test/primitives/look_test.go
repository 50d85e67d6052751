package primitives

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestLookThenRemove has a process look at a lock, another host put a new one in its place, and the process
// do to it what it wanted to do to the old one.
func TestLookThenRemove(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	here, there := g.Host, testcluster.StartShell(t, c.Nodes[0].Host, c.Mount)

	for i, look := range []struct{ what, bash, python string }{
		{"read", "cat lock > /dev/null", `open("lock").read()`},
		{"made", "(set -C; date > lock)", `open("lock", "x").write(__import__("time").ctime())`},
		{"nothing", "true", "pass"},
		{"stat", "stat lock > /dev/null; ls -l > /dev/null; [ -e lock ]", `os.stat("lock"); os.listdir()`},
	} {
		for j, change := range []struct{ what, bash, python, refusal string }{
			{"remove", "rm lock", `os.remove("lock")`, "No such file or directory"},
			{"rename over", "mv tmp lock", `os.rename("tmp", "lock")`, "Stale file handle"},
			{"rename away", "mv lock away", `os.rename("lock", "away")`, "No such file or directory"},
			{"truncate", "> lock", `open("lock", "w")`, "Stale file handle"},
		} {
			t.Run(look.what+" then "+change.what, func(t *testing.T) {
				steps := make(map[*testcluster.Shell][2]string)
				if testcluster.Long() || (i+j)%2 == 0 { // else each program has half of them, with each look and each change
					steps[testcluster.StartShell(t, here, c.Mount)] = [2]string{look.bash, change.bash}
				}
				if testcluster.Long() || (i+j)%2 == 1 {
					steps[testcluster.StartPython(t, here, c.Mount)] = [2]string{look.python, change.python}
				}
				for s, step := range steps {
					there.Must("cat away lock > /dev/null 2>&1; rm -f away lock; echo theirs > tmp")
					if look.what != "made" {
						there.Must("set -C; date > lock; set +C")
					}
					s.Must(step[0])
					there.Must("cat lock > /dev/null; rm lock; set -C; echo new $(date) > lock; set +C")
					before := c.Nodes[0].Refusals(t)
					if look.what == "nothing" || look.what == "stat" {
						s.Must(step[1])
						require.NotContains(t, there.Must("cat lock 2>&1 || :"), "new")
						require.Equal(t, before, c.Nodes[0].Refusals(t))
						continue
					}
					s.Fails(step[1], change.refusal)
					require.Contains(t, there.Must("cat lock"), "new")
					require.Equal(t, "theirs\n", there.Must("cat tmp"))
					require.Greater(t, c.Nodes[0].Refusals(t), before)
				}
			})
		}
	}

	t.Run("several", func(t *testing.T) {
		there.Must("cat lock > /dev/null 2>&1; rm -f lock; set -C; date > lock; date > other; set +C")
		a, b := testcluster.StartShell(t, here, c.Mount), testcluster.StartShell(t, here, c.Mount)
		a.Must("cat lock other")
		// What a process looked at is not what the next one looked at, nor what it looks at later.
		there.Must("cat lock > /dev/null; rm lock; set -C; date > lock; set +C")
		b.Must("cat lock")
		a.Fails("rm lock", "No such file or directory")
		a.Must("rm other")
		a.Must("cat lock; rm lock")
		b.Must("rm -f lock")
	})
}

// TestLookIntoALockDirectory is the same for a lock that is a directory with a file that tells its holder.
func TestLookIntoALockDirectory(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	for _, change := range []struct{ what, step string }{
		{"another holder", "rm -r lock; mkdir lock; echo $$ > lock/pid"},
		{"another, who has not told yet", "rm -r lock; mkdir lock"},
	} {
		for _, h := range []*hosts.Host{c.Nodes[0].Host, g.Host} {
			holder, next, breaker := testcluster.StartShell(t, h, c.Mount), testcluster.StartShell(t, h, c.Mount), testcluster.StartShell(t, g.Host, c.Mount)
			holder.Must("mkdir lock && echo $$ > lock/pid")
			breaker.Must("cat lock/pid")
			next.Must(change.step)
			made := next.Must("ls -Ri lock")
			_, err := breaker.Do("rm -r lock")
			require.Error(t, err, change.what)
			require.Equal(t, made, next.Must("ls -Ri lock"), change.what)
			next.Must("rm -r lock")
		}
	}
}
