package test

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
)

// never is a lock delay that no test waits for: a lock that is had all the same was not delayed.
var never = []string{"--lock-delay", "1h"}

// play has actors, named by the first word of each line, do steps, each with what it has to answer after
// "=>". A and B in an answer are their pids.
func play(t testing.TB, scene string, actors map[string]actor, pids map[string]string) {
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
		require.Equal(t, answer, actors[who].says(step), "%s: %s", who, step)
	}
}

// playEverywhere plays scenes on the local disk, which shows that they are what the kernel does, then on one
// host of a cluster, then on two.
func (c *cluster) playEverywhere(t *testing.T, scenes map[string]string) {
	t.Helper()
	a, b := c.leader().host, c.others(c.leader())[0].host
	for _, place := range []struct {
		name, dir string
		a, b      *hosts.Host
	}{
		{"the local disk", filepath.Join(c.net.Dir(), "disk"), a, a},
		{"one host", c.path("one"), b, b},
		{"two hosts", c.path("two"), a, b},
	} {
		place.a.MustRun(t, "mkdir", "-p", filepath.Join(place.dir, "0"))
		actors := make(map[string]actor)
		for name, h := range map[string]*hosts.Host{"A": place.a, "B": place.b} {
			actors[name] = startActor(t, h, filepath.Join(place.dir, "0"))
		}
		pids := make(map[string]string)
		for name, actor := range actors {
			pids[name] = "0" // a pid means nothing on another host
			if place.a == place.b {
				pids[name] = actor.says("print(os.getpid())")
			}
		}
		number := 0
		for name, scene := range scenes {
			number++
			t.Run(place.name+"/"+name, func(t *testing.T) {
				for _, actor := range actors {
					actor.must(fmt.Sprintf(`os.makedirs("../%d", exist_ok=True); os.chdir("../%[1]d")`, number))
					actor.must(`opened("f", "lock")`)
				}
				play(t, scene, actors, pids)
			})
		}
	}
}

// TestFlockAnswers compares what flock(2) answers.
func TestFlockAnswers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, never...)
	c.playEverywhere(t, map[string]string{
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
	c.requireSameState(t)
}

// startFlock starts flock(1) with a command that says so in a log when it has the lock.
func (c *cluster) startFlock(h *hosts.Host, lock, log, name string, flags ...string) *hosts.Process {
	args := append(flags, c.path(lock), "sh", "-c", `echo "enter $2" >> "$1"; echo "leave $2" >> "$1"`, "sh", log, name)
	return h.Start("flock", args...)
}

// TestFlockQueue has programs wait for a lock in an order.
func TestFlockQueue(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, never...)
	g := c.addGuest(t, "m")
	g.start(t)
	n := c.nodes[0]
	holder := startActor(t, c.nodes[0].host, c.mount)
	holder.must(`opened("f", "lock")`)

	t.Run("first come, first served", func(t *testing.T) {
		log := filepath.Join(c.net.Dir(), "fifo")
		holder.require(`flock("f", "ex")`, "ok")
		var waiting []string
		var expected string
		for i, h := range []*hosts.Host{g.host, c.nodes[1].host, c.nodes[0].host, c.nodes[2].host, c.nodes[1].host, g.host, c.nodes[0].host} {
			name := fmt.Sprint(i)
			c.startFlock(h, "lock", log, name)
			waiting = append(waiting, h.Name())
			expected += "enter " + name + "\nleave " + name + "\n"
			n.awaitAdvisory(t, "lock", "waiting", waiting...)
		}
		holder.require(`flock("f", "un")`, "ok")
		awaitLog(t, log, expected)
	})

	t.Run("a writer among readers", func(t *testing.T) {
		log := filepath.Join(c.net.Dir(), "readers")
		n.awaitAdvisory(t, "lock", "held")
		holder.require(`flock("f", "sh")`, "ok")
		c.startFlock(g.host, "lock", log, "reader", "-s")
		awaitLog(t, log, "enter reader\nleave reader\n")
		c.startFlock(c.nodes[1].host, "lock", log, "writer", "-x")
		n.awaitAdvisory(t, "lock", "waiting", "b")
		c.startFlock(g.host, "lock", log, "later", "-s")
		n.awaitAdvisory(t, "lock", "waiting", "b", "m")
		holder.require(`flock("f", "un")`, "ok")
		awaitLog(t, log, "enter reader\nleave reader\nenter writer\nleave writer\nenter later\nleave later\n")
	})

	// Two that hold a lock and both want it for themselves do not wait for each other.
	t.Run("conversion of two", func(t *testing.T) {
		other := startActor(t, g.host, c.mount)
		other.must(`opened("f", "lock")`)
		holder.require(`flock("f", "sh")`, "ok")
		other.require(`flock("f", "sh")`, "ok")
		converted := holder.starts(`flock("f", "ex", wait=True)`)
		n.awaitAdvisory(t, "lock", "waiting", "a")
		late := other.starts(`flock("f", "ex", wait=True)`)
		require.Equal(t, "ok", converted())
		n.awaitAdvisory(t, "lock", "waiting", "m")
		holder.require(`flock("f", "un")`, "ok")
		require.Equal(t, "ok", late())
		other.require(`close("f")`, "ok")
	})

	t.Run("who does not wait any more", func(t *testing.T) {
		log := filepath.Join(c.net.Dir(), "gone")
		holder.require(`flock("f", "ex", wait=True)`, "ok")
		killed := c.startFlock(g.host, "lock", log, "killed")
		n.awaitAdvisory(t, "lock", "waiting", "m")
		terminated := c.startFlock(c.nodes[2].host, "lock", log, "terminated")
		n.awaitAdvisory(t, "lock", "waiting", "m", "c")
		timed := c.startFlock(c.nodes[1].host, "lock", log, "timed", "-w", "0.1", "-E", "9")
		require.ErrorContains(t, timed.Wait(), "exit status 9")
		killed.Kill()
		require.ErrorContains(t, terminated.Stop(), "terminated")
		n.awaitAdvisory(t, "lock", "waiting")
		c.startFlock(g.host, "lock", log, "last")
		n.awaitAdvisory(t, "lock", "waiting", "m")
		holder.require(`close("f")`, "ok")
		awaitLog(t, log, "enter last\nleave last\n")
	})
	c.requireSameState(t)
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
	c := startCluster(t, 1, never...)
	n := c.nodes[0]
	next := startActor(t, n.host, c.mount)
	g := c.addGuest(t, "m")
	g.start(t)
	next.must(`opened("f", "lock")`)
	for _, kind := range []struct{ take, drop, wait string }{
		{`flock("f", "ex")`, `flock("f", "un")`, `flock("f", "ex", wait=True)`},
		{`lock("f", "w")`, `lock("f", "u")`, `lock("f", "w", wait=True)`},
		{`lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `lock("f", "w", wait=True, ofd=True)`},
	} {
		holder := startActor(t, g.host, c.mount)
		holder.must(`opened("f", "lock")`)
		holder.require(kind.take, "ok")
		holder.process.Kill()
		next.require(kind.wait, "ok")
		next.require(kind.drop, "ok")
	}
	// The kernel may not have told of the close before the mount ends.
	for range 5 {
		for _, end := range []func(){
			func() { g.host.MustRun(t, "sh", "-c", "flock $1/lock true; umount $1", "sh", c.mount) },
			func() {
				g.host.MustRun(t, "sh", "-c", "flock $1/lock true; kill $2", "sh", c.mount, g.hostPid(t))
			},
		} {
			end()
			require.NoError(t, g.daemon.Wait())
			require.Zero(t, mounts(t, g.host, c.mount))
			next.require(`flock("f", "ex", wait=True)`, "ok")
			next.require(`flock("f", "un")`, "ok")
			g.start(t)
		}
	}
}

// TestMountThatEndsWhileInUse has a mount told to end while programs there have a lock and wait for it. They learn of it;
// until the lock delay is over, nobody has what they had.
func TestMountThatEndsWhileInUse(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, never...)
	n := c.nodes[0]
	g := c.addGuest(t, "m")
	next := startActor(t, n.host, c.mount)
	for round := range rounds(1, 100) {
		lock := fmt.Sprint("lock", round)
		g.start(t)
		holder, waiter := startActor(t, g.host, c.mount), startActor(t, g.host, c.mount)
		for _, a := range []actor{holder, waiter, next} {
			a.must(fmt.Sprintf(`opened("f", %q)`, lock))
		}
		holder.require(`flock("f", "ex")`, "ok")
		waits := waiter.starts(`flock("f", "ex", wait=True)`)
		n.awaitAdvisory(t, lock, "waiting", "m")
		require.NoError(t, g.daemon.Stop())
		require.Contains(t, []string{"EIO", "ENOTCONN", "ECONNABORTED"}, waits())
		n.awaitSession(t, "m", "the session ends with the mount", none)
		n.awaitAdvisory(t, lock, "waiting")
		next.require(`flock("f", "sh")`, "EAGAIN")
		next.require(`close("f")`, "ok")
		for _, a := range []actor{holder, waiter} {
			a.process.Kill()
		}
	}
}

// TestFlockCommand uses flock(1) as its manual page does.
func TestFlockCommand(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, never...)
	here, there := startShell(t, c.nodes[0].host, c.mount), startShell(t, c.nodes[1].host, c.mount)

	here.must(`exec 9> lock && flock -n 9`)
	for _, refused := range []string{"flock -n lock true", "flock -sn lock true", "flock -w 0.1 lock true", "flock -n lock -c true"} {
		there.fails(refused, "exit status 1")
		here.fails(refused, "exit status 1")
	}
	there.fails("flock -n -E 77 lock true", "exit status 77")
	here.must("flock -u 9 && flock -s 9")
	there.must("flock -sn lock true")
	there.fails("flock -n lock true", "exit status 1")
	here.must("exec 9>&-")
	there.must("flock lock true") // the close may not be known yet

	// A command that goes on in the background has the lock, unless it is kept from it.
	here.must("flock lock sh -c 'sleep 1000 & echo $! > /dev/shm/background'")
	there.fails("flock -n lock true", "exit status 1")
	here.must("kill $(cat /dev/shm/background)")
	there.must("flock lock true")
	here.must("flock -o lock sh -c 'sleep 1000 & echo $! > /dev/shm/background'")
	there.must("flock lock true")
	here.must("kill $(cat /dev/shm/background); rm /dev/shm/background")

	// A directory, which the kernel keeps to itself, and a file that may only be read.
	here.must("mkdir dir && flock -n dir true && echo held > read && chmod 444 read")
	here.must(`exec 9< read && flock -n 9`)
	there.fails("flock -n read true", "exit status 1")
	here.must("exec 9<&-")

	// RELEASE comes after close has returned, and yet the next on the same host has the lock.
	here.must(`for i in $(seq 20); do exec 9> lock && flock -n 9 && exec 9>&- && flock -n lock true || { echo "round $i"; false; break; }; done`)
	for _, h := range []*hosts.Host{c.nodes[0].host, c.nodes[1].host} {
		startActor(t, h, c.mount).require(`say(close_and_flock, "at-once", 60)`, "ok")
	}
	c.requireSameState(t)
}

// TestLockInterrupts sends signals to programs that wait for locks.
func TestLockInterrupts(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, never...)
	n := c.nodes[0]
	g := c.addGuest(t, "m", "--op-timeout", "1s")
	g.start(t)
	for _, kind := range []struct{ name, take, drop, wait string }{
		{"flock", `flock("f", "ex")`, `flock("f", "un")`, `say(raw_flock, "f", "ex")`},
		{"fcntl", `lock("f", "w")`, `lock("f", "u")`, `say(raw_lock, "f", "w")`},
		{"ofd", `lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `say(raw_lock, "f", "w", 0, 0, True)`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			holder := startActor(t, c.nodes[0].host, c.mount)
			first, second := startActor(t, g.host, c.mount), startActor(t, c.nodes[2].host, c.mount)
			for _, a := range []actor{holder, first, second} {
				a.must(fmt.Sprintf("opened('f', '%s.lock')", kind.name))
			}
			awaitWaiting := func(of ...string) { n.awaitAdvisory(t, kind.name+".lock", "waiting", of...) }
			holder.require(kind.take, "ok")

			// Who was interrupted and does not come again soon has no place any more.
			first.must(`signals(restart=False)`)
			interrupted := first.starts(kind.wait)
			awaitWaiting("m")
			first.process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", interrupted())
			if kind.name == "flock" {
				n.awaitAdvisory(t, kind.name+".lock", "interrupted")
			}

			// Who does has kept it.
			interrupted = first.starts(kind.wait)
			awaitWaiting("m")
			behind := second.starts(kind.wait)
			awaitWaiting("m", "c")
			first.process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", interrupted())
			again := first.starts(kind.wait)

			// With SA_RESTART the system call itself comes again.
			awaitLocking(t, first)
			first.process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", again())
			first.must(`signals(restart=True)`)
			restarted := first.starts(kind.wait)
			for range 100 {
				first.process.Signal(unix.SIGALRM)
				time.Sleep(time.Millisecond)
			}
			awaitLocking(t, first)
			awaitWaiting("m", "c")
			holder.require(kind.drop, "ok")
			require.Equal(t, "ok", restarted())
			first.require(kind.drop, "ok")
			require.Equal(t, "ok", behind())
			second.require(`close("f")`, "ok")
		})
	}

	t.Run("all the time", func(t *testing.T) {
		var says []func() string
		for _, h := range []*hosts.Host{g.host, c.nodes[1].host, g.host} {
			a := startActor(t, h, c.mount)
			a.must(`opened("f", "storm")`)
			says = append(says, a.starts(`say(flock_under_signals, "f", 15)`))
		}
		for _, said := range says {
			require.Equal(t, "ok", said())
		}
		n.awaitAdvisory(t, "storm", "held")
		n.awaitAdvisory(t, "storm", "waiting")
	})

	// The cluster cannot be told that nobody waits any more. It may make a lock of the request before it is.
	t.Run("while cut off", func(t *testing.T) {
		holder, waiter := startActor(t, c.nodes[0].host, c.mount), startActor(t, g.host, c.mount)
		for _, a := range []actor{holder, waiter} {
			a.must(`opened("f", "cut"); signals(restart=False)`)
		}
		holder.require(`lock("f", "w", 0, 10)`, "ok")
		waiter.require(`lock("f", "w", 20, 10)`, "ok")
		waits := waiter.starts(`say(raw_lock, "f", "w", 0, 10)`)
		n.awaitAdvisory(t, "cut", "waiting", "m")
		g.host.Cut()
		waiter.process.Signal(unix.SIGALRM)
		require.Equal(t, "EIO", waits()) // all that it had is given up
		holder.require(`lock("f", "u")`, "ok")
		g.host.Heal()
		waiter.require(`lock("f", "w", 40, 1)`, "EIO")
		holder.require(`lock("f", "w", 20, 10)`, "EAGAIN") // before the lock delay is over
	})
	c.requireSameState(t)
}

// awaitLocking waits until a process is in a system call for a lock, and no signal is on its way to it.
func awaitLocking(t testing.TB, a actor) {
	t.Helper()
	hosts.Eventually(t, "flock(2) or fcntl(2)", func() (string, bool) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", a.process.Pid()))
		status, errStatus := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.process.Pid()))
		var number int
		_, _ = fmt.Sscan(string(text), &number)
		pending := !bytes.Contains(status, []byte("SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"))
		return fmt.Sprintf("%s%v %v", text, err, errStatus), !pending && (number == unix.SYS_FLOCK || number == unix.SYS_FCNTL)
	})
}

// TestServerThatStopsWhileInUse has the disk of a server fail while a program on its mount has a lock.
func TestServerThatStopsWhileInUse(t *testing.T) {
	t.Parallel()
	c := newCluster(t, never...)
	for range 3 {
		n := c.add(t)
		if n.name == "b" {
			n.host.MustRun(t, "mkdir", n.data)
			n.host.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=64m", "disk", n.data)
		}
		n.start(t)
	}
	a, b := c.nodes[0], c.nodes[1]
	holder, next := startActor(t, b.host, c.mount), startActor(t, a.host, c.mount)
	for _, actor := range []actor{holder, next} {
		actor.must(`opened("f", "lock")`)
	}
	holder.require(`flock("f", "ex")`, "ok")
	_, err := b.host.Run("dd", "if=/dev/zero", "bs=64k", "of="+filepath.Join(b.data, "fill"))
	require.ErrorContains(t, err, "No space left")
	next.must(`for i in range(200): open("content%d" % i, "wb").write(b"x" * 200000)`)
	require.Error(t, b.server.Wait(), "it cannot go on")
	b.server = nil
	a.awaitSession(t, "b", "the session ends with the mount", none)
	next.require(`flock("f", "sh")`, "EAGAIN")
}
