package test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLockDelay has mounts end in ways of which a program that has a lock learns only when it uses its
// descriptor again. Without a lock delay another host has the lock by then.
func TestLockDelay(t *testing.T) {
	t.Parallel()
	const delay = 1500 * time.Millisecond
	// EIO is answered to what comes between the farewell and the end of the mount.
	dead, stopped := []string{"ENOTCONN", "ECONNABORTED"}, []string{"ENOTCONN", "ECONNABORTED", "EIO"}
	stop := func(t testing.TB, g *guest) { require.NoError(t, g.daemon.Stop()); g.daemon = nil }
	ends := []struct {
		name   string
		end    func(t testing.TB, g *guest)
		errors []string // what the program may learn
	}{
		{"killed and started again", func(t testing.TB, g *guest) { g.kill(); g.start(t) }, dead},
		{"killed", func(_ testing.TB, g *guest) { g.kill() }, dead},
		{"stopped", stop, stopped},
		{"stopped and started again", func(t testing.TB, g *guest) { stop(t, g); g.start(t) }, stopped},
		{"unmounted lazily and stopped", func(t testing.TB, g *guest) {
			g.host.MustRun(t, "umount", "-l", g.cluster.mount)
			stop(t, g)
		}, stopped},
		{"unmounted by force", func(t testing.TB, g *guest) {
			g.host.MustRun(t, "umount", "-fl", g.cluster.mount)
			require.NoError(t, g.daemon.Wait())
			g.daemon = nil
		}, dead},
		{"cut off", func(_ testing.TB, g *guest) { g.host.Cut() }, []string{"ETIMEDOUT"}},
	}
	for _, flag := range []time.Duration{0, delay} {
		c := startCluster(t, 1, "--session-term", "1s", "--lock-delay", flag.String())
		g := c.addGuest(t, "m", "--op-timeout", "1s")
		for i, end := range ends {
			t.Run(fmt.Sprintf("%s, lock delay %v", end.name, flag), func(t *testing.T) {
				if g.daemon == nil {
					g.start(t)
				}
				lock, log := fmt.Sprint("lock", i), filepath.Join(c.net.Dir(), fmt.Sprint("log", flag, i))
				require.NoError(t, os.WriteFile(log, nil, 0o644))
				write := func(line string) string { return fmt.Sprintf(`print(%q, file=open(%q, "a"))`, line, log) }
				holder := startActor(t, g.host, c.mount)
				holder.must(fmt.Sprintf(`opened("f", %q)`, lock))
				holder.require(`flock("f", "ex")`, "ok")
				holder.must(write("enter holder"))
				c.startFlock(c.nodes[0].host, lock, log, "waiter")
				c.nodes[0].awaitAdvisory(t, lock, "waiting", "a")

				began := time.Now()
				end.end(t, g)
				if flag == 0 {
					awaitLog(t, log, "enter holder\nenter waiter\nleave waiter\n")
				}
				require.Contains(t, end.errors, holder.says(`say(until_lost, "f")`))
				holder.must(write("leave holder"))
				if flag != 0 {
					awaitLog(t, log, "enter holder\nleave holder\nenter waiter\nleave waiter\n")
					last, err := os.Stat(log)
					require.NoError(t, err)
					require.GreaterOrEqual(t, last.ModTime().Sub(began), delay)
				}
				text, err := os.ReadFile(log)
				require.NoError(t, err)
				faults, _ := overlaps(string(text))
				require.Equal(t, flag == 0, len(faults) > 0, "overlaps: %v", faults)
			})
		}
	}
}

// TestLostSession cuts a host off until the cluster has given it up. From then on nothing there says that all
// is well through a descriptor that had a lock.
func TestLostSession(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, "--session-term", "1s", "--lock-delay", "0")
	n := c.nodes[0]
	g := c.addGuest(t, "m", "--op-timeout", "1s")
	g.start(t)
	for _, kind := range []struct{ take, drop, wait string }{
		{`flock("f", "ex")`, `flock("f", "un")`, `flock("f", "ex", wait=True)`},
		{`lock("f", "w")`, `lock("f", "u")`, `lock("f", "w", wait=True)`},
	} {
		holder, waiter, fresh, former := startActor(t, g.host, c.mount), startActor(t, g.host, c.mount), startActor(t, g.host, c.mount), startActor(t, g.host, c.mount)
		for _, a := range []actor{holder, waiter, fresh, former} {
			a.must(`opened("f", "lock"); opened("unlocked", "lock")`)
		}
		former.require(kind.take, "ok")
		former.require(kind.drop, "ok")
		holder.require(kind.take, "ok")
		waits := waiter.starts(kind.wait)
		n.awaitAdvisory(t, "lock", "waiting", "m")
		answers := holder.starts(`say(answers, "f", "EIO")`)

		g.host.Cut()
		n.awaitAdvisory(t, "lock", "held")
		takes := fresh.starts(kind.take)
		g.host.Heal()
		require.Regexp(t, "^(ok )?(ETIMEDOUT )?EIO$", answers())
		require.Equal(t, "EIO", waits())
		require.Contains(t, []string{"ok", "ETIMEDOUT"}, takes())
		for _, step := range []string{kind.take, kind.drop, `say(os.write, files["f"], b"x")`, `say(os.pread, files["f"], 1, 0)`, `test("f", "w")`} {
			holder.require(step, "EIO")
		}
		former.require(`say(len, os.pread(files["f"], 1, 0))`, "0")
		for _, a := range []actor{holder, waiter, fresh, former} {
			a.require(`say(len, os.pread(files["unlocked"], 1, 0))`, "0")
			a.require(`close("f")`, "ok")
		}
		holder.must(`opened("f", "lock")`)
		holder.require(kind.wait, "ok")
		holder.require(`close("f")`, "ok")
	}
}
