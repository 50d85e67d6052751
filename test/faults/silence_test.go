package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// creates makes and removes a name until that fails, and tells when, on a clock that all processes share. The kernel lets one
// of those who do it in a directory at a time.
const creates = `
def creates(name):
    try:
        while True:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
            os.unlink(name)
    except OSError as error:
        print(NAMES[error.errno], time.monotonic())
`

// startCreators has actors create in one directory, and waits until all have begun.
func startCreators(t testing.TB, n int, h *hosts.Host, dir string) (creators []testcluster.Actor, fail []func() string) {
	t.Helper()
	h.MustRun(t, "mkdir", dir)
	for i := range n {
		a := testcluster.StartActor(t, h, dir)
		a.Must(fmt.Sprintf("exec(%q); os.mkdir('begun-%d')", creates, i))
		creators = append(creators, a)
		fail = append(fail, a.Starts(fmt.Sprintf("creates('name-%d')", i)))
	}
	hosts.Eventually(t, "names", func() (string, bool) {
		names := h.MustRun(t, "ls", dir)
		return names, strings.Contains(names, "name-")
	})
	return creators, fail
}

// TestCallsWithoutAMajorityEndTogether has programs wait for each other in one directory when the majority is lost. None waits
// for the time of the others; none fails any more once the majority is back.
func TestCallsWithoutAMajorityEndTogether(t *testing.T) {
	t.Parallel()
	const opTimeout = 4 * time.Second
	c := testcluster.StartCluster(t, 2, "--op-timeout", opTimeout.String())
	here, other := c.Nodes[0], c.Nodes[1]
	dir := c.Path("directory")
	_, fail := startCreators(t, 6, here.Host, dir)
	other.Kill()
	var first, last float64
	for _, failed := range fail {
		errno, at, _ := strings.Cut(failed(), " ")
		require.Equal(t, "ETIMEDOUT", errno)
		seconds, err := strconv.ParseFloat(at, 64)
		require.NoError(t, err)
		if first == 0 {
			first, last = seconds, seconds
		}
		first, last = min(first, seconds), max(last, seconds)
	}
	t.Logf("the last one failed %.1f s after the first", last-first)
	require.Less(t, last-first, opTimeout.Seconds())

	other.Start(t)
	hosts.Eventually(t, "a majority", func() (string, bool) {
		_, err := here.Host.Run("mkdir", filepath.Join(dir, "again"))
		return fmt.Sprint(err), err == nil
	})
	for i := range 6 {
		here.Host.MustRun(t, "mkdir", filepath.Join(dir, fmt.Sprint("now-", i)))
	}
	c.RequireSameState(t)
}

// TestKilledProgramsGoWithoutAMajority kills programs that wait for each other, on a mount whose calls would wait for long.
func TestKilledProgramsGoWithoutAMajority(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m", "--op-timeout", "1h")
	g.Start(t)
	creators, _ := startCreators(t, 6, g.Host, c.Path("directory"))
	g.Host.Cut()
	for _, a := range creators {
		a.Process.Signal(unix.SIGKILL) // which only the one whose turn it is can take
	}
	for _, a := range creators {
		select {
		case <-a.Process.Ended():
		case <-time.After(hosts.Patience):
			t.Fatal("a killed program waits")
		}
	}
	g.Host.Heal()
	g.Host.MustRun(t, "mkdir", c.Path("directory", "again"))
}

// TestStoppedMountAsks stops the process of a mount for longer than a call may take. It has not asked meanwhile, so nothing
// fails, be it on its way or new.
func TestStoppedMountAsks(t *testing.T) {
	t.Parallel()
	const opTimeout = 4 * time.Second
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m", "--op-timeout", opTimeout.String())
	g.Start(t)
	a := testcluster.StartActor(t, g.Host, c.Mount)
	g.Host.Cut()
	made := a.Starts(`say(os.mkdir, "on-its-way")`)
	hosts.Eventually(t, "mkdir(2)", func() (string, bool) {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", a.Process.Pid()))
		return fmt.Sprintf("%s, %v", call, err), strings.HasPrefix(string(call), fmt.Sprint(unix.SYS_MKDIR, " "))
	})
	g.Daemon.Freeze()
	time.Sleep(opTimeout + opTimeout/2) // that nobody counts
	g.Host.Heal()
	g.Daemon.Thaw()
	require.Equal(t, "ok", made())
	a.Require(`say(os.mkdir, "new")`, "ok")
}
