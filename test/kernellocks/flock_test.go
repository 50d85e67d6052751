package kernellocks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// never is a lock delay that no test waits for: a lock that is had all the same was not delayed.
var never = []string{"--lock-delay", "1h"}

// play has actors, named by the first word of each line, do steps, each with what it has to answer after
// "=>". A and B in an answer are their pids.
func play(t testing.TB, scene string, actors map[string]suite.Actor, pids map[string]string) {
	t.Helper()
	for line := range strings.Lines(scene) {
		who, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if who == "" {
			continue
		}
		step, answer, _ := strings.Cut(rest, "=>")
		answer = strings.TrimSpace(answer)
		for name, pid := range pids {
			answer = strings.ReplaceAll(answer, "by "+name, "by "+pid)
		}
		require.Equal(t, answer, actors[who].Says(step), "%s: %s", who, step)
	}
}

// playEverywhere plays scenes on the local disk, which shows that they are what the kernel does, then on one
// host of a cluster, then on two.
func playEverywhere(t *testing.T, c *suite.Cluster, scenes map[string]string) {
	t.Helper()
	a, b := c.Leader().Host, c.Others(c.Leader())[0].Host
	for _, place := range []struct {
		name, dir string
		a, b      *hosts.Host
	}{
		{"the local disk", filepath.Join(c.Net.Dir(), "disk"), a, a},
		{"one host", c.Path("one"), b, b},
		{"two hosts", c.Path("two"), a, b},
	} {
		place.a.MustRun(t, "mkdir", "-p", filepath.Join(place.dir, "0"))
		actors := make(map[string]suite.Actor)
		for name, h := range map[string]*hosts.Host{"A": place.a, "B": place.b} {
			actors[name] = suite.StartActor(t, h, filepath.Join(place.dir, "0"))
		}
		pids := make(map[string]string)
		for name, actor := range actors {
			pids[name] = "0" // a pid means nothing on another host
			if place.a == place.b {
				pids[name] = actor.Says("print(os.getpid())")
			}
		}
		number := 0
		for name, scene := range scenes {
			number++
			t.Run(place.name+"/"+name, func(t *testing.T) {
				for _, actor := range actors {
					actor.Must(fmt.Sprintf(`os.makedirs("../%d", exist_ok=True); os.chdir("../%[1]d")`, number))
					actor.Must(`opened("f", "lock")`)
				}
				play(t, scene, actors, pids)
			})
		}
	}
}

// TestFlockAnswers compares what flock(2) answers.
func TestFlockAnswers(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 3, never...)
	playEverywhere(t, c, map[string]string{
		"shared and exclusive": `
			A flock("f", "un")   => ok
			A flock("f", "sh")   => ok
			B flock("f", "sh")   => ok
			B flock("f", "sh")   => ok
			A flock("f", "un")   => ok
			B flock("f", "un")   => ok
			A flock("f", "ex")   => ok
			A flock("f", "ex")   => ok
			B flock("f", "ex")   => EAGAIN
			B flock("f", "sh")   => EAGAIN
			A flock("f", "un")   => ok
			B flock("f", "ex")   => ok
			A flock("f", "sh")   => EAGAIN`,
		"conversion": `
			A flock("f", "ex")   => ok
			A flock("f", "sh")   => ok
			B flock("f", "sh")   => ok
			B flock("f", "un")   => ok
			A flock("f", "ex")   => ok
			B flock("f", "sh")   => EAGAIN`,
		"a conversion that fails gives up what there was": `
			A flock("f", "sh")   => ok
			B flock("f", "sh")   => ok
			A flock("f", "ex")   => EAGAIN
			B flock("f", "ex")   => ok
			A flock("f", "sh")   => EAGAIN`,
		"read-only, write-only and without permission": `
			A os.chmod("lock", 0o444)                => 
			A opened("r", "lock", os.O_RDONLY)       =>
			B opened("w", "lock", os.O_WRONLY)       =>
			A flock("r", "ex")                       => ok
			B flock("w", "ex")                       => EAGAIN
			A flock("r", "un")                       => ok
			B flock("w", "ex")                       => ok
			A flock("r", "sh")                       => EAGAIN`,
		"two descriptions of one process": `
			A opened("g", "lock")                    =>
			A flock("f", "ex")                       => ok
			A flock("g", "ex")                       => EAGAIN
			A flock("g", "sh")                       => EAGAIN
			A close("f")                             => ok
			A flock("g", "ex", wait=True)            => ok
			A close("g")                             => ok
			B flock("f", "ex", wait=True)            => ok`,
		"one description, two descriptors": `
			A files["g"] = os.dup(files["f"])        =>
			A flock("f", "ex")                       => ok
			A flock("g", "ex")                       => ok
			A close("f")                             => ok
			B flock("f", "sh")                       => EAGAIN
			A close("g")                             => ok
			B flock("f", "sh", wait=True)            => ok`,
		"inherited over fork": `
			A flock("f", "ex")                       => ok
			A forked('flock("f", "ex")')             => ok
			A forked('os.close(files["f"])')         =>
			B flock("f", "sh")                       => EAGAIN
			A forked('flock("f", "un")')             => ok
			B flock("f", "sh")                       => ok
			A forked('flock("f", "sh")')             => ok
			B flock("f", "ex")                       => EAGAIN`,
		"truncation, renaming, another name": `
			A flock("f", "ex")                       => ok
			B opened("t", "lock", os.O_WRONLY | os.O_TRUNC) =>
			B flock("t", "ex")                       => EAGAIN
			A os.rename("lock", "renamed")           =>
			A os.link("renamed", "lock")             =>
			B opened("l", "lock")                    =>
			B flock("l", "ex")                       => EAGAIN
			B os.unlink("renamed")                   =>
			B flock("l", "ex")                       => EAGAIN`,
		"removed and made again": `
			A flock("f", "ex")                       => ok
			A os.unlink("lock")                      =>
			B opened("n", "lock")                    =>
			B flock("n", "ex")                       => ok
			A flock("f", "ex")                       => ok
			A close("f")                             => ok
			A opened("f", "lock")                    =>
			A flock("f", "ex")                       => EAGAIN`,
	})
	c.RequireSameState(t)
}

// startFlock starts flock(1) with a command that says so in a log when it has the lock.
func startFlock(c *suite.Cluster, h *hosts.Host, lock, log, name string, flags ...string) *hosts.Process {
	args := append(flags, c.Path(lock), "sh", "-c", `echo "enter $2" >> "$1"; echo "leave $2" >> "$1"`, "sh", log, name)
	return h.Start("flock", args...)
}

// TestFlockQueue has programs wait for a lock in an order.
func TestFlockQueue(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 3, never...)
	g := c.AddGuest(t, "m")
	g.Start(t)
	n := c.Nodes[0]
	holder := suite.StartActor(t, c.Nodes[0].Host, c.Mount)
	holder.Must(`opened("f", "lock")`)

	t.Run("first come, first served", func(t *testing.T) {
		log := filepath.Join(c.Net.Dir(), "fifo")
		holder.Require(`flock("f", "ex")`, "ok")
		var waiting []string
		var expected string
		for i, h := range []*hosts.Host{g.Host, c.Nodes[1].Host, c.Nodes[0].Host, c.Nodes[2].Host, c.Nodes[1].Host, g.Host, c.Nodes[0].Host} {
			name := fmt.Sprint(i)
			startFlock(c, h, "lock", log, name)
			waiting = append(waiting, h.Name())
			expected += "enter " + name + "\nleave " + name + "\n"
			n.AwaitAdvisory(t, "lock", "waiting", waiting...)
		}
		holder.Require(`flock("f", "un")`, "ok")
		awaitLog(t, log, expected)
	})

	t.Run("a writer among readers", func(t *testing.T) {
		log := filepath.Join(c.Net.Dir(), "readers")
		n.AwaitAdvisory(t, "lock", "held")
		holder.Require(`flock("f", "sh")`, "ok")
		startFlock(c, g.Host, "lock", log, "reader", "-s")
		awaitLog(t, log, "enter reader\nleave reader\n")
		startFlock(c, c.Nodes[1].Host, "lock", log, "writer", "-x")
		n.AwaitAdvisory(t, "lock", "waiting", "b")
		startFlock(c, g.Host, "lock", log, "later", "-s")
		n.AwaitAdvisory(t, "lock", "waiting", "b", "m")
		holder.Require(`flock("f", "un")`, "ok")
		awaitLog(t, log, "enter reader\nleave reader\nenter writer\nleave writer\nenter later\nleave later\n")
	})

	// Two that hold a lock and both want it for themselves do not wait for each other.
	t.Run("conversion of two", func(t *testing.T) {
		other := suite.StartActor(t, g.Host, c.Mount)
		other.Must(`opened("f", "lock")`)
		holder.Require(`flock("f", "sh")`, "ok")
		other.Require(`flock("f", "sh")`, "ok")
		converted := holder.Starts(`flock("f", "ex", wait=True)`)
		n.AwaitAdvisory(t, "lock", "waiting", "a")
		late := other.Starts(`flock("f", "ex", wait=True)`)
		require.Equal(t, "ok", converted())
		n.AwaitAdvisory(t, "lock", "waiting", "m")
		holder.Require(`flock("f", "un")`, "ok")
		require.Equal(t, "ok", late())
		other.Require(`close("f")`, "ok")
	})

	t.Run("who does not wait any more", func(t *testing.T) {
		log := filepath.Join(c.Net.Dir(), "gone")
		holder.Require(`flock("f", "ex", wait=True)`, "ok")
		killed := startFlock(c, g.Host, "lock", log, "killed")
		n.AwaitAdvisory(t, "lock", "waiting", "m")
		terminated := startFlock(c, c.Nodes[2].Host, "lock", log, "terminated")
		n.AwaitAdvisory(t, "lock", "waiting", "m", "c")
		timed := startFlock(c, c.Nodes[1].Host, "lock", log, "timed", "-w", "0.1", "-E", "9")
		require.ErrorContains(t, timed.Wait(), "exit status 9")
		killed.Kill()
		require.ErrorContains(t, terminated.Stop(), "terminated")
		n.AwaitAdvisory(t, "lock", "waiting")
		startFlock(c, g.Host, "lock", log, "last")
		n.AwaitAdvisory(t, "lock", "waiting", "m")
		holder.Require(`close("f")`, "ok")
		awaitLog(t, log, "enter last\nleave last\n")
	})
	c.RequireSameState(t)
}

// awaitLog waits until a file on the local disk has some content.
func awaitLog(t testing.TB, log, content string) {
	t.Helper()
	hosts.Eventually(t, log+" is complete", func() (string, bool) {
		text, err := os.ReadFile(log)
		return fmt.Sprintf("%s%v", text, err), string(text) == content
	})
}

// TestLockEnds has holders end, and mounts that nobody uses any more: nothing is delayed.
func TestLockEnds(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 1, never...)
	n := c.Nodes[0]
	next := suite.StartActor(t, n.Host, c.Mount)
	g := c.AddGuest(t, "m")
	g.Start(t)
	next.Must(`opened("f", "lock")`)
	for _, kind := range []struct{ take, drop, wait string }{
		{`flock("f", "ex")`, `flock("f", "un")`, `flock("f", "ex", wait=True)`},
		{`lock("f", "w")`, `lock("f", "u")`, `lock("f", "w", wait=True)`},
		{`lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `lock("f", "w", wait=True, ofd=True)`},
	} {
		holder := suite.StartActor(t, g.Host, c.Mount)
		holder.Must(`opened("f", "lock")`)
		holder.Require(kind.take, "ok")
		holder.Process.Kill()
		next.Require(kind.wait, "ok")
		next.Require(kind.drop, "ok")
	}
	// The kernel may not have told of the close before the mount ends.
	for range 5 {
		for _, end := range []func(){
			func() { g.Host.MustRun(t, "sh", "-c", "flock $1/lock true; umount $1", "sh", c.Mount) },
			func() {
				g.Host.MustRun(t, "sh", "-c", "flock $1/lock true; kill $2", "sh", c.Mount, g.HostPID(t))
			},
		} {
			end()
			require.NoError(t, g.Daemon.Wait())
			require.Zero(t, suite.CountMounts(t, g.Host, c.Mount))
			next.Require(`flock("f", "ex", wait=True)`, "ok")
			next.Require(`flock("f", "un")`, "ok")
			g.Start(t)
		}
	}
}

// TestMountThatEndsWhileInUse has a mount told to end while programs there have a lock and wait for it. They learn of it;
// until the lock delay is over, nobody has what they had.
func TestMountThatEndsWhileInUse(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 1, never...)
	n := c.Nodes[0]
	g := c.AddGuest(t, "m")
	next := suite.StartActor(t, n.Host, c.Mount)
	for round := range suite.Rounds(1, 100) {
		lock := fmt.Sprint("lock", round)
		g.Start(t)
		holder, waiter := suite.StartActor(t, g.Host, c.Mount), suite.StartActor(t, g.Host, c.Mount)
		for _, a := range []suite.Actor{holder, waiter, next} {
			a.Must(fmt.Sprintf(`opened("f", %q)`, lock))
		}
		holder.Require(`flock("f", "ex")`, "ok")
		waits := waiter.Starts(`flock("f", "ex", wait=True)`)
		n.AwaitAdvisory(t, lock, "waiting", "m")
		require.NoError(t, g.Daemon.Stop())
		require.Contains(t, []string{"EIO", "ENOTCONN", "ECONNABORTED"}, waits())
		n.AwaitSession(t, "m", "the session ends with the mount", suite.NoSession)
		n.AwaitAdvisory(t, lock, "waiting")
		next.Require(`flock("f", "sh")`, "EAGAIN")
		next.Require(`close("f")`, "ok")
		for _, a := range []suite.Actor{holder, waiter} {
			a.Process.Kill()
		}
	}
}

// TestFlockCommand uses flock(1) as its manual page does.
func TestFlockCommand(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 3, never...)
	here, there := suite.StartShell(t, c.Nodes[0].Host, c.Mount), suite.StartShell(t, c.Nodes[1].Host, c.Mount)

	here.Must(`exec 9> lock && flock -n 9`)
	for _, refused := range []string{"flock -n lock true", "flock -sn lock true", "flock -w 0.1 lock true", "flock -n lock -c true"} {
		there.Fails(refused, "exit status 1")
		here.Fails(refused, "exit status 1")
	}
	there.Fails("flock -n -E 77 lock true", "exit status 77")
	here.Must("flock -u 9 && flock -s 9")
	there.Must("flock -sn lock true")
	there.Fails("flock -n lock true", "exit status 1")
	here.Must("exec 9>&-")
	there.Must("flock lock true") // the close may not be known yet

	// A command that goes on in the background has the lock, unless it is kept from it.
	here.Must("flock lock sh -c 'sleep 1000 & echo $! > /dev/shm/background'")
	there.Fails("flock -n lock true", "exit status 1")
	here.Must("kill $(cat /dev/shm/background)")
	there.Must("flock lock true")
	here.Must("flock -o lock sh -c 'sleep 1000 & echo $! > /dev/shm/background'")
	there.Must("flock lock true")
	here.Must("kill $(cat /dev/shm/background); rm /dev/shm/background")

	// A directory, which the kernel keeps to itself, and a file that may only be read.
	here.Must("mkdir dir && flock -n dir true && echo held > read && chmod 444 read")
	here.Must(`exec 9< read && flock -n 9`)
	there.Fails("flock -n read true", "exit status 1")
	here.Must("exec 9<&-")

	// RELEASE comes after close has returned, and yet the next on the same host has the lock.
	here.Must(`for i in $(seq 20); do exec 9> lock && flock -n 9 && exec 9>&- && flock -n lock true || { echo "round $i"; false; break; }; done`)
	for _, h := range []*hosts.Host{c.Nodes[0].Host, c.Nodes[1].Host} {
		suite.StartActor(t, h, c.Mount).Require(`say(close_and_flock, "at-once", 60)`, "ok")
	}
	c.RequireSameState(t)
}

// TestLockInterrupts sends signals to programs that wait for locks.
func TestLockInterrupts(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 3, never...)
	n := c.Nodes[0]
	g := c.AddGuest(t, "m", "--op-timeout", "1s")
	g.Start(t)
	for _, kind := range []struct{ name, take, drop, wait string }{
		{"flock", `flock("f", "ex")`, `flock("f", "un")`, `say(raw_flock, "f", "ex")`},
		{"fcntl", `lock("f", "w")`, `lock("f", "u")`, `say(raw_lock, "f", "w")`},
		{"ofd", `lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `say(raw_lock, "f", "w", 0, 0, True)`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			holder := suite.StartActor(t, c.Nodes[0].Host, c.Mount)
			first, second := suite.StartActor(t, g.Host, c.Mount), suite.StartActor(t, c.Nodes[2].Host, c.Mount)
			for _, a := range []suite.Actor{holder, first, second} {
				a.Must(fmt.Sprintf("opened('f', '%s.lock')", kind.name))
			}
			awaitWaiting := func(of ...string) { n.AwaitAdvisory(t, kind.name+".lock", "waiting", of...) }
			holder.Require(kind.take, "ok")

			// Who was interrupted and does not come again soon has no place any more.
			first.Must(`signals(restart=False)`)
			interrupted := first.Starts(kind.wait)
			awaitWaiting("m")
			first.Process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", interrupted())
			if kind.name == "flock" {
				n.AwaitAdvisory(t, kind.name+".lock", "interrupted")
			}

			// Who does has kept it.
			interrupted = first.Starts(kind.wait)
			awaitWaiting("m")
			behind := second.Starts(kind.wait)
			awaitWaiting("m", "c")
			first.Process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", interrupted())
			again := first.Starts(kind.wait)

			// With SA_RESTART the system call itself comes again.
			awaitLocking(t, first)
			first.Process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", again())
			first.Must(`signals(restart=True)`)
			restarted := first.Starts(kind.wait)
			for range 100 {
				first.Process.Signal(unix.SIGALRM)
				time.Sleep(time.Millisecond)
			}
			awaitLocking(t, first)
			awaitWaiting("m", "c")
			holder.Require(kind.drop, "ok")
			require.Equal(t, "ok", restarted())
			first.Require(kind.drop, "ok")
			require.Equal(t, "ok", behind())
			second.Require(`close("f")`, "ok")
		})
	}

	t.Run("all the time", func(t *testing.T) {
		var says []func() string
		for _, h := range []*hosts.Host{g.Host, c.Nodes[1].Host, g.Host} {
			a := suite.StartActor(t, h, c.Mount)
			a.Must(`opened("f", "storm")`)
			says = append(says, a.Starts(`say(flock_under_signals, "f", 15)`))
		}
		for _, said := range says {
			require.Equal(t, "ok", said())
		}
		n.AwaitAdvisory(t, "storm", "held")
		n.AwaitAdvisory(t, "storm", "waiting")
	})

	// The cluster cannot be told that nobody waits any more. It may make a lock of the request before it is.
	t.Run("while cut off", func(t *testing.T) {
		holder, waiter := suite.StartActor(t, c.Nodes[0].Host, c.Mount), suite.StartActor(t, g.Host, c.Mount)
		for _, a := range []suite.Actor{holder, waiter} {
			a.Must(`opened("f", "cut"); signals(restart=False)`)
		}
		holder.Require(`lock("f", "w", 0, 10)`, "ok")
		waiter.Require(`lock("f", "w", 20, 10)`, "ok")
		waits := waiter.Starts(`say(raw_lock, "f", "w", 0, 10)`)
		n.AwaitAdvisory(t, "cut", "waiting", "m")
		g.Host.Cut()
		waiter.Process.Signal(unix.SIGALRM)
		require.Equal(t, "EIO", waits()) // all that it had is given up
		holder.Require(`lock("f", "u")`, "ok")
		g.Host.Heal()
		waiter.Require(`lock("f", "w", 40, 1)`, "EIO")
		holder.Require(`lock("f", "w", 20, 10)`, "EAGAIN") // before the lock delay is over
	})
	c.RequireSameState(t)
}

// awaitLocking waits until a process is in a system call for a lock, and no signal is on its way to it.
func awaitLocking(t testing.TB, a suite.Actor) {
	t.Helper()
	hosts.Eventually(t, "flock(2) or fcntl(2)", func() (string, bool) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", a.Process.Pid()))
		status, errStatus := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.Process.Pid()))
		var number int
		_, _ = fmt.Sscan(string(text), &number)
		pending := !bytes.Contains(status, []byte("SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"))
		return fmt.Sprintf("%s%v %v", text, err, errStatus), !pending && (number == unix.SYS_FLOCK || number == unix.SYS_FCNTL)
	})
}

// TestServerThatStopsWhileInUse has the disk of a server fail while a program on its mount has a lock.
func TestServerThatStopsWhileInUse(t *testing.T) {
	t.Parallel()
	c := suite.NewCluster(t, never...)
	for range 3 {
		n := c.Add(t)
		if n.Name == "b" {
			n.Host.MustRun(t, "mkdir", n.Data)
			n.Host.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=64m", "disk", n.Data)
		}
		n.Start(t)
	}
	a, b := c.Nodes[0], c.Nodes[1]
	holder, next := suite.StartActor(t, b.Host, c.Mount), suite.StartActor(t, a.Host, c.Mount)
	for _, actor := range []suite.Actor{holder, next} {
		actor.Must(`opened("f", "lock")`)
	}
	holder.Require(`flock("f", "ex")`, "ok")
	_, err := b.Host.Run("dd", "if=/dev/zero", "bs=64k", "of="+filepath.Join(b.Data, "fill"))
	require.ErrorContains(t, err, "No space left")
	next.Must(`for i in range(200): open("content%d" % i, "wb").write(b"x" * 200000)`)
	require.Error(t, b.Server.Wait(), "it cannot go on")
	b.Server = nil
	a.AwaitSession(t, "b", "the session ends with the mount", suite.NoSession)
	next.Require(`flock("f", "sh")`, "EAGAIN")
}
