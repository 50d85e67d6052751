package operation

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A machine has an id for good, and another one for each time that it is started. Here it is a host of any name.
type machine struct {
	guest *testcluster.Guest
}

// addMachine makes a host that mounts under the name of a machine. An empty id is none.
func addMachine(t testing.TB, c *testcluster.Cluster, host, name, id, boot string) *machine {
	t.Helper()
	m := &machine{c.AddGuest(t, host, "--name", name)}
	m.host().MustRun(t, "sh", "-ec", `
		mount -t tmpfs etc /mnt
		mkdir /mnt/lib
		mount --bind /mnt/lib /var/lib
		echo "$1" > /mnt/machine-id
		mount --bind /mnt/machine-id /etc/machine-id`, "sh", id)
	m.boot(t, boot)
	return m
}

func (m *machine) host() *hosts.Host { return m.guest.Host }

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
	c := testcluster.StartCluster(t, 1, testcluster.ShortTerm...)
	a := c.Nodes[0]
	a.SetRule(t, "*.lock", "--holder", "creator", "--any-file")
	first := addMachine(t, c, "first", "debian", idOfFirst, bootA1)
	second := addMachine(t, c, "second", "debian", idOfSecond, bootB1)
	first.guest.Start(t)

	held := []string{"pid", "beads", "created.lock", "touched.lock", "semaphore"}
	holder := c.StartHolder(t, first.host(), "pid", testcluster.PidContent)
	holder.Must("set -C; " + testcluster.BeadsContent + " > beads; > created.lock; touch touched.lock; " + testcluster.SemaphoreContent + " > semaphore; set +C")

	// While both are there, the other one is refused.
	require.ErrorContains(t, second.tryMount(t, "10s"), "give one of them another --name")

	first.host().Cut()
	c.AwaitState(t, a.Host, "pid", "unreachable")
	second.guest.Start(t)
	other := testcluster.StartShell(t, second.host(), c.Mount)
	for _, lock := range held {
		if lock != "semaphore" {
			c.AwaitState(t, second.host(), lock, "unreachable")
		}
		for _, h := range []*hosts.Host{second.host(), a.Host} {
			_, err := h.Run("rm", c.Path(lock))
			require.ErrorContains(t, err, "Device or resource busy", "%s on %s", lock, h.Name())
		}
		other.Fails("cat "+lock+" && echo mine > t && mv t "+lock, "Device or resource busy")
		require.NotContains(t, other.Must("cat .lockfs/why/"+lock), "may be removed by: anyone", lock)
	}
	// Its own locks are its own.
	mine := c.StartHolder(t, second.host(), "mine", testcluster.PidContent)
	mine.Must("touch mine.lock; rm mine.lock; rm mine; set -C; " + testcluster.SemaphoreContent + " > mine; rm mine")
	dead := c.StartHolder(t, second.host(), "dead", testcluster.PidContent)
	dead.Process.Kill()
	c.AwaitGone(t, "dead", a.Host)
	require.NoError(t, second.guest.Daemon.Stop())

	first.host().Heal()
	for _, lock := range held {
		c.AwaitState(t, a.Host, lock, "held")
	}
	holder.Must("rm semaphore")
	holder.Process.Kill()
	for _, lock := range held {
		c.AwaitGone(t, lock, a.Host)
	}
}

// TestMachineBootsAgain leaves locks behind whose holders cannot live any more. One machine has an id, and lockfs keeps one
// for the other.
func TestMachineBootsAgain(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, testcluster.ShortTerm...)
	a := c.Nodes[0]
	a.SetRule(t, "*.lock", "--holder", "creator", "--any-file")
	for name, id := range map[string]string{"known": machineA, "unknown": ""} {
		t.Run(name, func(t *testing.T) {
			m := addMachine(t, c, name, "debian-"+name, id, bootA1)
			m.guest.Start(t)
			dir := path.Join(c.Mount, name)
			m.host().MustRun(t, "mkdir", dir)
			holder := testcluster.StartShell(t, m.host(), dir)
			holder.Must("set -C; echo $$ > pid; " + testcluster.BeadsContent + " > beads; touch a.lock; " + testcluster.SemaphoreContent + " > semaphore; set +C")
			m.guest.Kill()
			m.guest.Start(t) // of the same boot: nothing has changed
			c.RequireHeld(t, name+"/pid", a.Host, m.host())
			m.guest.Kill()
			m.boot(t, bootA2)
			c.AwaitState(t, a.Host, name+"/pid", "unreachable")
			m.guest.Start(t)
			for _, lock := range []string{"pid", "beads", "a.lock"} {
				c.AwaitGone(t, name+"/"+lock, a.Host, m.host())
			}
			c.RequireHeld(t, name+"/semaphore", a.Host)
			m.host().MustRun(t, "rm", path.Join(dir, "semaphore"))
		})
	}
}

// TestCloneOfAMachine has another boot of a machine come that runs on: a clone has its machine id.
func TestCloneOfAMachine(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, testcluster.ShortTerm...)
	a := c.Nodes[0]
	original := addMachine(t, c, "original", "debian", machineA, bootA1)
	clone := addMachine(t, c, "clone", "debian", machineA, bootA2)
	original.guest.Start(t)
	holder := testcluster.StartShell(t, original.host(), "/")
	holder.Must("set -C; echo $$ > " + c.Path("pid") + "; set +C")

	require.ErrorContains(t, clone.tryMount(t, "6s"), "give one of them another --name")
	c.RequireHeld(t, "pid", a.Host, original.host())
	hosts.Eventually(t, "the alarm names both", func() (string, bool) {
		alarms, err := a.Lockfs("alarm", "list")
		return alarms, err == nil && strings.Contains(alarms, "two_hosts") &&
			strings.Contains(alarms, original.host().Addr()) && strings.Contains(alarms, clone.host().Addr())
	})

	// The original ends its mount, and its processes go on. Silence alone lets the clone in.
	require.NoError(t, original.guest.Daemon.Stop())
	clone.guest.Start(t)
	require.Contains(t, clone.guest.Daemon.Log(), "was mounted in an earlier boot until just now")
	c.AwaitGone(t, "pid", a.Host, clone.host())
	require.ErrorContains(t, original.tryMount(t, "3s"), "give one of them another --name")
}

// tryMount mounts under the name of the machines of these tests, and gives up after a time.
func (m *machine) tryMount(t testing.TB, wait string) error {
	t.Helper()
	c := m.guest.Cluster
	args := append([]string{"mount", "--name", "debian", "--wait", wait, c.Mount}, c.MountFlags(t, "debian", c.Servers())...)
	_, err := m.host().Run(c.Program, args...)
	return err
}
