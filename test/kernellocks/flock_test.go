package kernellocks

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// never is a lock delay that no test waits for: a lock that is had all the same was not delayed.
var never = []string{"--lock-delay", "1h"}

// TestFlockAnswers compares what flock(2) answers.
func TestFlockAnswers(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, never...)
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
func startFlock(c *testcluster.Cluster, h *hosts.Host, lock, log, name string, flags ...string) *hosts.Process {
	args := append(flags, c.Path(lock), "sh", "-c", `echo "enter $2" >> "$1"; echo "leave $2" >> "$1"`, "sh", log, name)
	return h.Start("flock", args...)
}

// TestFlockQueue has programs wait for a lock in an order.
func TestFlockQueue(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, never...)
	g := c.AddGuest(t, "m")
	g.Start(t)
	n := c.Nodes[0]
	holder := testcluster.StartActor(t, c.Nodes[0].Host, c.Mount)
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
		other := testcluster.StartActor(t, g.Host, c.Mount)
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

// TestFlockCommand uses flock(1) as its manual page does.
func TestFlockCommand(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, never...)
	here, there := testcluster.StartShell(t, c.Nodes[0].Host, c.Mount), testcluster.StartShell(t, c.Nodes[1].Host, c.Mount)

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
		testcluster.StartActor(t, h, c.Mount).Require(`say(close_and_flock, "at-once", 60)`, "ok")
	}
	c.RequireSameState(t)
}
