package test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A machine has an id for good, and another one for each time that it is started. Here it is a host of any name.
type machine struct {
	guest *guest
}

// addMachine makes a host that mounts under the name of a machine. An empty id is none.
func (c *cluster) addMachine(t testing.TB, host, name, id, boot string) *machine {
	t.Helper()
	m := &machine{c.addGuest(t, host, "--name", name)}
	m.host().MustRun(t, "sh", "-ec", `
		mount -t tmpfs etc /mnt
		mkdir /mnt/lib
		mount --bind /mnt/lib /var/lib
		echo "$1" > /mnt/machine-id
		mount --bind /mnt/machine-id /etc/machine-id`, "sh", id)
	m.boot(t, boot)
	return m
}

func (m *machine) host() *hosts.Host { return m.guest.host }

// boot starts the machine, with nothing left of what does not outlast that.
func (m *machine) boot(t testing.TB, id string) {
	t.Helper()
	m.host().MustRun(t, "sh", "-ec", `
		rm -rf /run/*
		echo "$1" > /mnt/boot_id
		mount --bind /mnt/boot_id /proc/sys/kernel/random/boot_id`, "sh", id)
}

const (
	machineA = "0123456789abcdef0123456789abcdef"
	machineB = "fedcba9876543210fedcba9876543210"
	bootA1   = "01234567-89ab-4cde-8f01-23456789abc1"
	bootA2   = "01234567-89ab-4cde-8f01-23456789abc2"
	bootB1   = "01234567-89ab-4cde-8f01-23456789abc3"
)

// TestMachinesOfOneName has another machine of its name come while one is cut off, whose locks live.
func TestMachinesOfOneName(t *testing.T) {
	t.Parallel()
	t.Run("known by their ids", func(t *testing.T) { testMachinesOfOneName(t, machineA, machineB) })
	t.Run("without ids of their own", func(t *testing.T) { testMachinesOfOneName(t, "", "") })
}

func testMachinesOfOneName(t *testing.T, idOfFirst, idOfSecond string) {
	c := startCluster(t, 1, shortTerm...)
	a := c.nodes[0]
	a.set(t, "*.lock", "--holder", "creator")
	first := c.addMachine(t, "first", "debian", idOfFirst, bootA1)
	second := c.addMachine(t, "second", "debian", idOfSecond, bootB1)
	first.guest.start(t)

	held := []string{"pid", "beads", "created.lock", "touched.lock", "semaphore"}
	holder := c.holder(t, first.host(), "pid", pidContent)
	holder.must("set -C; " + beadsContent + " > beads; > created.lock; touch touched.lock; " + semaphoreContent + " > semaphore; set +C")

	// While both are there, the other one is refused.
	_, err := second.host().Run(c.program, "mount", "--servers", c.servers(), "--name", "debian", "--wait", "2s", c.mount)
	require.ErrorContains(t, err, "give one of them another --name")

	first.host().Cut()
	c.awaitState(t, a.host, "pid", "unreachable")
	second.guest.start(t)
	other := startShell(t, second.host(), c.mount)
	for _, lock := range held {
		if lock != "semaphore" {
			c.awaitState(t, second.host(), lock, "unreachable")
		}
		for _, h := range []*hosts.Host{second.host(), a.host} {
			_, err := h.Run("rm", c.path(lock))
			require.ErrorContains(t, err, "Device or resource busy", "%s on %s", lock, h.Name())
		}
		other.fails("cat "+lock+" && echo mine > t && mv t "+lock, "Device or resource busy")
		require.NotContains(t, other.must("cat .lockfs/why/"+lock), "may be removed by: anyone", lock)
	}
	// Its own locks are its own.
	mine := c.holder(t, second.host(), "mine", pidContent)
	mine.must("touch mine.lock; rm mine.lock; rm mine; set -C; " + semaphoreContent + " > mine; rm mine")
	dead := c.holder(t, second.host(), "dead", pidContent)
	dead.process.Kill()
	c.awaitGone(t, "dead", a.host)
	require.NoError(t, second.guest.daemon.Stop())

	first.host().Heal()
	for _, lock := range held {
		c.awaitState(t, a.host, lock, "held")
	}
	holder.must("rm semaphore")
	holder.process.Kill()
	for _, lock := range held {
		c.awaitGone(t, lock, a.host)
	}
}

// TestMachineBootsAgain leaves locks behind whose holders cannot live any more. One machine has an id, and lockfs keeps one
// for the other.
func TestMachineBootsAgain(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, shortTerm...)
	a := c.nodes[0]
	a.set(t, "*.lock", "--holder", "creator")
	for name, id := range map[string]string{"known": machineA, "unknown": ""} {
		t.Run(name, func(t *testing.T) {
			m := c.addMachine(t, name, "debian-"+name, id, bootA1)
			m.guest.start(t)
			dir := path.Join(c.mount, name)
			m.host().MustRun(t, "mkdir", dir)
			holder := startShell(t, m.host(), dir)
			holder.must("set -C; echo $$ > pid; " + beadsContent + " > beads; touch a.lock; " + semaphoreContent + " > semaphore; set +C")
			m.guest.kill()
			m.guest.start(t) // of the same boot: nothing has changed
			c.requireHeld(t, name+"/pid", a.host, m.host())
			m.guest.kill()
			m.boot(t, bootA2)
			c.awaitState(t, a.host, name+"/pid", "unreachable")
			m.guest.start(t)
			for _, lock := range []string{"pid", "beads", "a.lock"} {
				c.awaitGone(t, name+"/"+lock, a.host, m.host())
			}
			c.requireHeld(t, name+"/semaphore", a.host)
			m.host().MustRun(t, "rm", path.Join(dir, "semaphore"))
		})
	}
}
