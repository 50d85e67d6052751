package kernellocks

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestLockDelay has mounts end in ways of which a program that has a lock learns only when it uses its
// descriptor again. Without a lock delay another host has the lock by then.
func TestLockDelay(t *testing.T) {
	t.Parallel()
	const delay = 5 * time.Second
	// EIO is answered to what comes between the farewell and the end of the mount.
	dead, stopped := []string{"ENOTCONN", "ECONNABORTED"}, []string{"ENOTCONN", "ECONNABORTED", "EIO"}
	stop := func(t testing.TB, g *testcluster.Guest) { require.NoError(t, g.Daemon.Stop()); g.Daemon = nil }
	ends := []struct {
		name   string
		end    func(t testing.TB, g *testcluster.Guest)
		errors []string // what the program may learn
	}{
		{"killed and started again", func(t testing.TB, g *testcluster.Guest) { g.Kill(); g.Start(t) }, dead},
		{"killed", func(_ testing.TB, g *testcluster.Guest) { g.Kill() }, dead},
		{"stopped", stop, stopped},
		{"stopped and started again", func(t testing.TB, g *testcluster.Guest) { stop(t, g); g.Start(t) }, stopped},
		{"unmounted lazily and stopped", func(t testing.TB, g *testcluster.Guest) {
			g.Host.MustRun(t, "umount", "-l", g.Cluster.Mount)
			stop(t, g)
		}, stopped},
		{"unmounted by force", func(t testing.TB, g *testcluster.Guest) {
			g.Host.MustRun(t, "umount", "-fl", g.Cluster.Mount)
			require.NoError(t, g.Daemon.Wait())
			g.Daemon = nil
		}, dead},
		{"cut off", func(_ testing.TB, g *testcluster.Guest) { g.Host.Cut() }, []string{"ETIMEDOUT"}},
	}
	for _, flag := range []time.Duration{0, delay} {
		c := testcluster.StartCluster(t, 1, "--session-term", "2s", "--lock-delay", flag.String())
		g := c.AddGuest(t, "m", "--op-timeout", "2s")
		for i, end := range ends {
			t.Run(fmt.Sprintf("%s, lock delay %v", end.name, flag), func(t *testing.T) {
				if g.Daemon == nil {
					g.Start(t)
				}
				lock, log := fmt.Sprint("lock", i), filepath.Join(c.Net.Dir(), fmt.Sprint("log", flag, i))
				require.NoError(t, os.WriteFile(log, nil, 0o644))
				write := func(line string) string { return fmt.Sprintf(`print(%q, file=open(%q, "a"))`, line, log) }
				holder := testcluster.StartActor(t, g.Host, c.Mount)
				holder.Must(fmt.Sprintf(`opened("f", %q)`, lock))
				holder.Require(`flock("f", "ex")`, "ok")
				holder.Must(write("enter holder"))
				startFlock(c, c.Nodes[0].Host, lock, log, "waiter")
				c.Nodes[0].AwaitAdvisory(t, lock, "waiting", "a")

				began := time.Now()
				end.end(t, g)
				if flag == 0 {
					awaitLog(t, log, "enter holder\nenter waiter\nleave waiter\n")
				}
				require.Contains(t, end.errors, holder.Says(`say(until_lost, "f")`))
				holder.Must(write("leave holder"))
				if flag != 0 {
					awaitLog(t, log, "enter holder\nleave holder\nenter waiter\nleave waiter\n")
					last, err := os.Stat(log)
					require.NoError(t, err)
					require.GreaterOrEqual(t, last.ModTime().Sub(began), delay)
				}
				text, err := os.ReadFile(log)
				require.NoError(t, err)
				faults, _ := testcluster.Overlaps(string(text))
				require.Equal(t, flag == 0, len(faults) > 0, "overlaps: %v", faults)
			})
		}
	}
}

// TestLostSession cuts a host off until the cluster has given it up. From then on nothing there says that all
// is well through a descriptor that had a lock.
func TestLostSession(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, "--session-term", "2s", "--lock-delay", "0")
	n := c.Nodes[0]
	g := c.AddGuest(t, "m", "--op-timeout", "2s")
	g.Start(t)
	for _, kind := range []struct{ take, drop, wait string }{
		{`flock("f", "ex")`, `flock("f", "un")`, `flock("f", "ex", wait=True)`},
		{`lock("f", "w")`, `lock("f", "u")`, `lock("f", "w", wait=True)`},
	} {
		holder, waiter, fresh, former := testcluster.StartActor(t, g.Host, c.Mount), testcluster.StartActor(t, g.Host, c.Mount), testcluster.StartActor(t, g.Host, c.Mount), testcluster.StartActor(t, g.Host, c.Mount)
		for _, a := range []testcluster.Actor{holder, waiter, fresh, former} {
			a.Must(`opened("f", "lock"); opened("unlocked", "lock")`)
		}
		former.Require(kind.take, "ok")
		former.Require(kind.drop, "ok")
		holder.Require(kind.take, "ok")
		waits := waiter.Starts(kind.wait)
		n.AwaitAdvisory(t, "lock", "waiting", "m")
		answers := holder.Starts(`say(answers, "f", "EIO")`)

		g.Host.Cut()
		n.AwaitAdvisory(t, "lock", "held")
		takes := fresh.Starts(kind.take)
		g.Host.Heal()
		require.Regexp(t, "^(ok )?(ETIMEDOUT )?EIO$", answers())
		require.Equal(t, "EIO", waits())
		require.Contains(t, []string{"ok", "ETIMEDOUT"}, takes())
		for _, step := range []string{kind.take, kind.drop, `say(os.write, files["f"], b"x")`, `say(os.pread, files["f"], 1, 0)`, `test("f", "w")`} {
			holder.Require(step, "EIO")
		}
		former.Require(`say(len, os.pread(files["f"], 1, 0))`, "0")
		for _, a := range []testcluster.Actor{holder, waiter, fresh, former} {
			a.Require(`say(len, os.pread(files["unlocked"], 1, 0))`, "0")
			a.Require(`close("f")`, "ok")
		}
		holder.Must(`opened("f", "lock")`)
		holder.Require(kind.wait, "ok")
		holder.Require(`close("f")`, "ok")
	}
}
