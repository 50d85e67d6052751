package kernellocks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestRecordLockAnswers compares what fcntl(2) answers, for locks of processes and of open file descriptions.
func TestRecordLockAnswers(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, never...)
	playEverywhere(t, c, map[string]string{
		"split and merge": `
			A lock("f", "w", 0, 30)       => ok
			B test("f", "r")              => w 0+30 by A
			B lock("f", "r", 29, 1)       => EAGAIN
			B lock("f", "w", 30, 10)      => ok
			A test("f", "w")              => w 30+10 by B
			A lock("f", "u", 10, 10)      => ok
			B test("f", "w", 0, 5)        => w 0+10 by A
			B test("f", "w", 10, 10)      => free
			B test("f", "w", 15, 10)      => w 20+10 by A
			B lock("f", "w", 10, 10)      => ok
			A lock("f", "w", 10, 10)      => EAGAIN
			B lock("f", "u")              => ok
			A lock("f", "w", 10, 10)      => ok
			B test("f", "w", 12, 1)       => w 0+30 by A
			A lock("f", "w", 30, 5)       => ok
			B test("f", "w", 34, 1)       => w 0+35 by A
			A lock("f", "u", 0, 1)        => ok
			B test("f", "w", 0, 0)        => w 1+34 by A`,
		"upgrade and downgrade": `
			A lock("f", "r", 0, 30)       => ok
			B lock("f", "r", 0, 30)       => ok
			A lock("f", "w", 10, 10)      => EAGAIN
			B test("f", "w", 0, 5)        => r 0+30 by A
			B lock("f", "u", 10, 10)      => ok
			A lock("f", "w", 10, 10)      => ok
			B test("f", "r", 0, 30)       => w 10+10 by A
			B test("f", "r", 20, 10)      => free
			B test("f", "w", 20, 5)       => r 20+10 by A
			A lock("f", "r", 15, 5)       => ok
			B test("f", "r", 0, 30)       => w 10+5 by A
			B test("f", "w", 19, 1)       => r 15+15 by A`,
		"to the end of the file, and backwards": `
			A lock("f", "w", 5, 0)                    => ok
			B test("f", "r", 1000000000000, 1)        => w 5+0 by A
			B lock("f", "w", 0, 5)                    => ok
			B lock("f", "w", 0, 6)                    => EAGAIN
			A lock("f", "u", 100, 0)                  => ok
			B test("f", "r", 50, 0)                   => w 5+95 by A
			B lock("f", "w", 200, -50)                => ok
			A test("f", "w", 150, 1)                  => w 150+50 by B
			B lock("f", "w", 0, -1)                   => EINVAL
			A lock("f", "w", -1, 5)                   => EINVAL
			A lock("f", "w", 2**63 - 1, 1)            => ok
			B test("f", "w", 2**63 - 1, 0)            => w 9223372036854775807+0 by A`,
		"any close drops the locks": `
			A opened("g", "lock")                     =>
			A opened("r", "lock", os.O_RDONLY)        =>
			A lock("f", "w", 0, 10)                   => ok
			A lock("g", "w", 20, 10)                  => ok
			B lock("f", "w")                          => EAGAIN
			A close("r")                              => ok
			B lock("f", "w")                          => ok
			B lock("f", "u")                          => ok
			A lock("f", "w", 0, 10)                   => ok
			A files["d"] = os.dup(files["g"])         =>
			A close("d")                              => ok
			B lock("f", "w")                          => ok`,
		"a close drops no locks that were taken after it": `
			A opened("g", "lock")                     =>
			A flock("f", "ex")                        => ok
			A lock("f", "w", 0, 1)                    => ok
			A lock("f", "w", 20, 1, ofd=True)         => ok
			A os.close(files.pop("f")); lock("g", "w", 5, 1)    => ok
			B lock("f", "w", 20, 1, wait=True)        => ok
			B lock("f", "w", 5, 1)                    => EAGAIN`,
		"not inherited over fork": `
			A lock("f", "w", 0, 10)                   => ok
			A forked('lock("f", "w", 0, 10)')         => EAGAIN
			A forked('close("f")')                    => ok
			A forked('lock("f", "u")')                => ok
			B lock("f", "r", 9, 1)                    => EAGAIN`,
		"descriptors that cannot": `
			A opened("r", "lock", os.O_RDONLY)        =>
			A opened("w", "lock", os.O_WRONLY)        =>
			A lock("r", "w")                          => EBADF
			A lock("w", "r")                          => EBADF
			A lock("r", "w", ofd=True)                => EBADF
			A lock("r", "r")                          => ok
			A lock("w", "w")                          => ok
			A test("w", "r")                          => free
			B lock("f", "r")                          => EAGAIN`,
		"another kind than flock": `
			A flock("f", "ex")                        => ok
			B lock("f", "w")                          => ok
			A lock("f", "w")                          => EAGAIN
			B flock("f", "sh")                        => EAGAIN`,
		"open file descriptions": `
			A opened("g", "lock")                     =>
			A lock("f", "w", 0, 10, ofd=True)         => ok
			A lock("g", "w", 5, 1, ofd=True)          => EAGAIN
			A lock("f", "w", 5, 10, ofd=True)         => ok
			A lock("f", "w", 5, 1)                    => EAGAIN
			B lock("f", "w", 5, 1)                    => EAGAIN
			A close("g")                              => ok
			B lock("f", "r", 5, 1, ofd=True)          => EAGAIN
			A forked('lock("f", "u", 0, 5, ofd=True)')          => ok
			B lock("f", "r", 0, 5, ofd=True)          => ok
			A forked('os.close(files["f"])')          =>
			B lock("f", "r", 5, 10, ofd=True)         => EAGAIN
			A files["g"] = os.dup(files["f"])         =>
			A close("f")                              => ok
			B lock("f", "r", 5, 10, ofd=True)         => EAGAIN
			B test("f", "r", 5, 10, ofd=True)         => w 5+10 by -1
			A close("g")                              => ok
			B lock("f", "w", 5, 10, ofd=True, wait=True)        => ok`,
		"open file descriptions, split and converted": `
			A lock("f", "w", 0, 30, ofd=True)         => ok
			A lock("f", "r", 10, 10, ofd=True)        => ok
			B lock("f", "r", 10, 10, ofd=True)        => ok
			B lock("f", "r", 9, 1, ofd=True)          => EAGAIN
			A lock("f", "w", 10, 10, ofd=True)        => EAGAIN
			A lock("f", "u", 5, 5, ofd=True)          => ok
			B test("f", "w", 0, 10, ofd=True)         => w 0+5 by -1
			B lock("f", "u", ofd=True)                => ok
			A lock("f", "w", 5, 20, ofd=True)         => ok
			B test("f", "r", ofd=True)                => w 0+30 by -1`,
	})

	// What three processes do with a few bytes, at random, each answered as on the local disk.
	t.Run("at random", func(t *testing.T) {
		c.Nodes[0].Host.MustRun(t, "mkdir", c.Path("random"))
		disk := t.TempDir()
		var here, everywhere []testcluster.Actor
		for _, n := range c.Nodes {
			here = append(here, testcluster.StartActor(t, n.Host, disk))
			everywhere = append(everywhere, testcluster.StartActor(t, n.Host, c.Path("random")))
		}
		for i := range here {
			for _, a := range []testcluster.Actor{here[i], everywhere[i]} {
				a.Must(`opened("f", "lock"); opened("g", "lock")`)
			}
		}
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		for range testcluster.Faults(150) {
			i := random.IntN(len(here))
			step := randomStep(random)
			want := here[i].Says(step)
			// Asked again: the kernel tells of a last close after close(2) has returned.
			if strings.HasPrefix(step, "print") || strings.HasPrefix(step, "lock") && want == "ok" {
				hosts.Eventually(t, fmt.Sprintf("seed %d: %d: %s: %s", seed, i, step, want), func() (string, bool) {
					got := everywhere[i].Says(step)
					return got, got == want
				})
				continue
			}
			require.Equal(t, want, everywhere[i].Says(step), "seed %d: %d: %s", seed, i, step)
		}
	})
	c.RequireSameState(t)
}

// randomStep is one that asks who is in the way only of a byte, or the answer could be one of several.
func randomStep(random *rand.Rand) string {
	file := []string{"f", "g"}[random.IntN(2)]
	kind := []string{"r", "w", "w", "u"}[random.IntN(4)]
	start := random.IntN(12)
	length := random.IntN(12 - start + 1) // 0: to the end
	switch ofd := []string{"False", "True"}[random.IntN(2)]; random.IntN(10) {
	case 0:
		return fmt.Sprintf(`say(os.close, files.pop(%q)); opened(%[1]q, "lock")`, file)
	case 1, 2:
		return fmt.Sprintf(`print(get_lock(files[%q], GET[%s], "w", %d, 1) == "free")`, file, ofd, start)
	default:
		return fmt.Sprintf(`lock(%q, %q, %d, %d, ofd=%s)`, file, kind, start, length, ofd)
	}
}

// TestDeadlock has processes wait for each other in a circle, and in what is none.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, never...)
	g := c.AddGuest(t, "m")
	g.Start(t)
	n := c.Nodes[0]
	on := append(c.Hosts(), g.Host)
	start := func(t *testing.T, lock string) []testcluster.Actor {
		var actors []testcluster.Actor
		for _, h := range on {
			a := testcluster.StartActor(t, h, c.Mount)
			a.Must(fmt.Sprintf(`opened("f", %q); opened("g", %[1]q)`, lock))
			actors = append(actors, a)
		}
		return actors
	}
	take := func(i int, flags string) string { return fmt.Sprintf(`lock("f", "w", %d, 1%s)`, i, flags) }
	const waits, ofd, unlock = ", wait=True", ", wait=True, ofd=True", `lock("f", "u")`

	t.Run("a circle", func(t *testing.T) {
		for size := 2; size <= len(on); size++ {
			lock := fmt.Sprint("circle", size)
			a := start(t, lock)[:size]
			for i := range a {
				a[i].Require(take(i, ""), "ok")
			}
			var waiting []func() string
			var names []string
			for i := range size - 1 {
				waiting = append(waiting, a[i].Starts(take(i+1, waits)))
				names = append(names, a[i].Process.Host().Name())
				n.AwaitAdvisory(t, lock, "waiting", names...)
			}
			last := a[size-1]
			last.Require(take(0, waits), "EDEADLK")
			last.Require(take(0, waits), "EDEADLK")
			last.Require(take(0, ""), "EAGAIN") // without waiting there is none
			last.Require(unlock, "ok")
			for i := len(waiting) - 1; i >= 0; i-- {
				require.Equal(t, "ok", waiting[i]())
				a[i].Require(unlock, "ok")
			}
		}
	})

	t.Run("two readers that both want to write", func(t *testing.T) {
		a := start(t, "readers")
		a[0].Require(`lock("f", "r", 0, 1)`, "ok")
		a[3].Require(`lock("f", "r", 0, 1)`, "ok")
		first := a[0].Starts(take(0, waits))
		n.AwaitAdvisory(t, "readers", "waiting", "a")
		a[3].Require(take(0, waits), "EDEADLK")
		a[3].Require(unlock, "ok")
		require.Equal(t, "ok", first())
	})

	// Who waits may be freed by another thread, so nothing is proven.
	t.Run("open file descriptions", func(t *testing.T) {
		a := start(t, "descriptions")
		a[0].Require(take(0, ", ofd=True"), "ok")
		a[3].Require(take(1, ", ofd=True"), "ok")
		first := a[0].Starts(take(1, ofd))
		n.AwaitAdvisory(t, "descriptions", "waiting", "a")
		a[3].Starts(take(0, ofd))
		n.AwaitAdvisory(t, "descriptions", "waiting", "a", "m")
		a[3].Process.Kill()
		require.Equal(t, "ok", first())
	})

	t.Run("a thread that may unlock", func(t *testing.T) {
		a := start(t, "thread")
		a[0].Require(take(0, ""), "ok")
		a[3].Require(take(1, ""), "ok")
		a[0].Must(fmt.Sprintf(`threaded(%q)`, take(1, waits)))
		n.AwaitAdvisory(t, "thread", "waiting", "a")
		second := a[3].Starts(take(0, waits))
		n.AwaitAdvisory(t, "thread", "waiting", "a", "m")
		a[0].Require(`lock("f", "u", 0, 1)`, "ok")
		require.Equal(t, "ok", second())
		a[3].Require(unlock, "ok")
		n.AwaitAdvisory(t, "thread", "held", "a")
	})

	t.Run("one that was interrupted", func(t *testing.T) {
		a := start(t, "interrupted")
		a[0].Require(take(0, ""), "ok")
		a[3].Require(take(1, ""), "ok")
		a[0].Must(`signals(restart=False)`)
		first := a[0].Starts(`say(raw_lock, "f", "w", 1, 1)`)
		n.AwaitAdvisory(t, "interrupted", "waiting", "a")
		a[0].Process.Signal(unix.SIGALRM)
		require.Equal(t, "EINTR", first())
		second := a[3].Starts(take(0, waits))
		n.AwaitAdvisory(t, "interrupted", "waiting", "m")
		a[0].Require(unlock, "ok")
		require.Equal(t, "ok", second())
	})
	c.RequireSameState(t)
}

// TestReopenedFilesKeepTheirLocks has the release of one open file description come while the next one locks.
func TestReopenedFilesKeepTheirLocks(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	testcluster.StartActor(t, c.Nodes[0].Host, c.Mount).Require(`say(reopened, "lock", 60)`, "0")
}

// TestAWaitOutlastsAClose has a thread close a descriptor of the file for which another one waits: that releases what their
// process has, and ends no wait.
func TestAWaitOutlastsAClose(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, never...)
	n := c.Nodes[0]
	holder, waiter := testcluster.StartActor(t, n.Host, c.Mount), testcluster.StartActor(t, n.Host, c.Mount)
	holder.Must(`opened("f", "lock")`)
	holder.Require(`lock("f", "w")`, "ok")
	const closes = `
while not os.path.exists("go"):
    time.sleep(0.01)
os.close(files.pop("g"))
os.mkdir("closed")
`
	waiter.Must(`opened("f", "lock"); opened("g", "lock")`)
	waiter.Must(fmt.Sprintf("threaded(%q)", closes))
	waits := waiter.Starts(`lock("f", "w", wait=True)`)
	n.AwaitAdvisory(t, "lock", "waiting", n.Host.Name())
	n.Host.MustRun(t, "mkdir", c.Path("go"))
	hosts.Eventually(t, "the close", func() (string, bool) {
		_, err := n.Host.Run("rmdir", c.Path("closed"))
		return fmt.Sprint(err), err == nil
	})
	n.AwaitAdvisory(t, "lock", "waiting", n.Host.Name())
	holder.Require(`lock("f", "u")`, "ok")
	require.Equal(t, "ok", waits())
	n.AwaitAdvisory(t, "lock", "held", n.Host.Name())
	c.RequireSameState(t)
}
