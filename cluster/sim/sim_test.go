package sim

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/linear"
)

// booted is when all hosts were: before the year 2000, with which simulated time begins.
var booted = time.Date(1999, time.December, 31, 0, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	hostinfo.Simulate(func() time.Duration { return time.Since(booted) })
	os.Exit(m.Run())
}

// scratch is a directory in memory, if there is such. Its name is always as long.
func scratch(t testing.TB) string {
	dir := filepath.Join("/dev/shm", fmt.Sprintf("lockfs-sim-%016x", rand.Uint64()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// simulate lets a world live, and answers it.
func simulate(t *testing.T, p plan) (w *world) {
	cryptotest.SetGlobalRandom(t, p.seed)
	disks := foundedDisks(t, p.voters)
	dir := scratch(t)
	defer func() { _ = os.RemoveAll(dir) }()
	forgiving(func() {
		synctest.Test(t, func(*testing.T) {
			w = newWorld(p, filepath.Join(dir, "w"))
			w.live(disks)
		})
	})
	return w
}

// forgiving lets goroutines be left in a bubble. Raft leaves those waiting whose commands nobody has taken when it ends, for as long as
// the process lasts.
func forgiving(run func()) {
	defer func() {
		if left := recover(); left != nil && !strings.Contains(fmt.Sprint(left), "main bubble goroutine has exited") {
			panic(left)
		}
	}()
	run()
}

var (
	seedFlag = flag.Uint64("sim.seed", 0, "the seed of one world to simulate; 0: several")
	logFlag  = flag.String("sim.log", "", "where to write what all servers and mounts of that world have logged")
	forFlag  = flag.Duration("sim.for", 0, "for how long worlds are simulated, one after the other; 0: those of a few fixed seeds")
	fromFlag = flag.Uint64("sim.from", 0, "the first of their seeds; 0: any")
	cutsFlag = flag.Int("sim.cuts", 8, "how often the power is cut in each kind of write")
)

// fixedSeeds are simulated each time.
const fixedSeeds = 6

// TestWorlds simulates worlds, and requires of each what the package comment says.
func TestWorlds(t *testing.T) {
	first, last := uint64(1), uint64(fixedSeeds)
	switch {
	case *seedFlag != 0:
		first, last = *seedFlag, *seedFlag
	case *forFlag != 0 && *fromFlag != 0:
		first, last = *fromFlag, math.MaxUint64
	case *forFlag != 0:
		first, last = rand.Uint64N(math.MaxUint64/2), math.MaxUint64
	}
	f := &figures{began: time.Now(), did: make(map[string]int)}
	for seed := first; seed <= last && !t.Failed() && (*forFlag == 0 || time.Since(f.began) < *forFlag); seed++ {
		p := usual(seed)
		p.logs = *logFlag != ""
		w := simulate(t, p)
		f.add(w)
		if p.logs {
			must(os.WriteFile(*logFlag, w.log.Bytes(), 0o600))
		}
		if *seedFlag != 0 {
			t.Logf("digest %s", w.digest())
		}
		if err := w.check(); errors.Is(err, linear.ErrUndecided) {
			f.undecided++
		} else if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Log(f)
}

// figures are those of several worlds.
type figures struct {
	began                        time.Time
	worlds, histories, undecided int
	simulated, recovery          time.Duration
	slowest                      uint64 // seed of the world with the longest recovery
	did                          map[string]int
}

func (f *figures) add(w *world) {
	f.worlds++
	f.histories += len(w.dirs)
	f.simulated += time.Duration(w.settled)
	if w.recovery > f.recovery {
		f.recovery, f.slowest = w.recovery, w.seed
	}
	for what, n := range w.did {
		f.did[what] += n
	}
}

func (f *figures) String() string {
	var b strings.Builder
	took := time.Since(f.began)
	fmt.Fprintf(&b, "%d histories in %d worlds, %.0f a minute, %v of simulated time in %v; not decided in time: %d; all works again after %v at most (seed %d)",
		f.histories, f.worlds, float64(f.histories)/took.Minutes(), f.simulated.Round(time.Second), took.Round(time.Second), f.undecided,
		f.recovery.Round(time.Millisecond), f.slowest)
	for _, what := range slices.Sorted(maps.Keys(f.did)) {
		fmt.Fprintf(&b, "\n%8d %s", f.did[what], what)
	}
	return b.String()
}
