package faults

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/differential"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// Of a mode, in an ordinary run.
const (
	lockstepSequences = 40
	lockstepSteps     = 150 // of a sequence, each a call or a few
	// shortenLimit is how long a sequence that shows a difference is shortened.
	shortenLimit = 30 * time.Second
)

// TestLockstep has three hosts and a local disk do the same at random: see package differential. The sequences follow from
// a seed, and from the numbers of the processes:
//
//	LOCKFS_TEST_SEED=N        another one, or "random"
//	LOCKFS_TEST_SOAK=N        N times as many sequences
func TestLockstep(t *testing.T) {
	t.Parallel()
	seed := uint64(fixedSeed)
	if _, set := os.LookupEnv(seedVariable); set {
		seed = randomSeed(t)
	}
	c, host := testcluster.StartInMemory(t)
	var guests []*hosts.Host
	for _, name := range []string{"ash", "birch", "cedar"} { // no words of contents
		g := c.AddGuest(t, name)
		g.Start(t)
		guests = append(guests, g.Host)
	}
	disk := testcluster.LocalDir(t, c, "disk", host, `mount -t tmpfs local "$1"`)
	for _, mode := range differential.Modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			m := startMatch(t, mode, host, c.Mount, disk, guests...)
			began := time.Now()
			for n := range uint64(testcluster.Faults(lockstepSequences)) {
				random := rand.New(rand.NewPCG(seed, n))
				requireInStep(t, m, fmt.Sprintf("sequence %d of seed %d", n, seed), differential.Random(random, mode, len(guests), lockstepSteps))
			}
			t.Logf("%d calls in %.1fs, refused with a reason: %v", m.Calls, time.Since(began).Seconds(), m.Refusals)
			if mode == differential.Locks {
				for _, errno := range []string{"EBUSY", "ENOENT", "ESTALE"} {
					require.NotZero(t, m.Refusals[errno], errno)
				}
			}
		})
	}
}

func requireInStep(t *testing.T, m *differential.Match, name string, sequence []differential.Step) {
	t.Helper()
	d, err := m.Play(sequence)
	require.NoError(t, err, name)
	if d == nil {
		return
	}
	shorter, shown, err := m.Shorten(sequence, d, shortenLimit)
	require.NoError(t, err, name)
	var steps []string
	for _, step := range shorter {
		steps = append(steps, step.String())
	}
	t.Fatalf("%s, step %d: %s\nShortened:\n%s\nshows %s", name, d.Step, d, strings.Join(steps, "\n"), shown)
}

// startMatch starts a family on each of some hosts, in a directory of the mount. An observer has that too, and the local disk.
func startMatch(t testing.TB, mode differential.Mode, observer *hosts.Host, mount, disk string, on ...*hosts.Host) *differential.Match {
	t.Helper()
	m := &differential.Match{Mode: mode, Observer: startStepper(t, observer, mount)}
	for _, h := range on {
		m.Mount = append(m.Mount, startStepper(t, h, mount))
		m.Disk = append(m.Disk, startStepper(t, observer, disk))
	}
	return m
}

// startStepper starts a worker on a host, in a directory.
func startStepper(t testing.TB, h *hosts.Host, dir string) *differential.Worker {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, socket.(*net.UnixListener).SetDeadline(time.Now().Add(hosts.Patience)))
	self, err := os.Executable()
	require.NoError(t, err)
	process := h.Start(self, differential.Args(path, dir)...)
	w, err := differential.Await(socket)
	require.NoError(t, err, process.Log())
	t.Cleanup(w.Close)
	return w
}
