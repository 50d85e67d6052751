package sim

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"iter"
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

	"golang.org/x/sys/unix"

	"lockfs/raftstore/hostinfo"
	"lockfs/test/history"
	"lockfs/test/ledger"
)

// booted is when all hosts were: before the year 2000, with which simulated time begins.
var booted = time.Date(1999, time.December, 31, 0, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	hostinfo.Simulate(func() time.Duration { return time.Since(booted) })
	os.Exit(m.Run())
}

// scratch is a directory in memory, if there is such, which is there until the test ends. Its name depends on how many there are: where nobody
// else simulates anything, worlds have the same each time.
func scratch(t testing.TB) string {
	for n := 0; ; n++ {
		dir := filepath.Join("/dev/shm", fmt.Sprintf("lockfs-sim-%06d", n))
		switch err := os.Mkdir(dir, 0o700); {
		case err == nil:
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return dir
		case !os.IsExist(err):
			return t.TempDir()
		}
	}
}

// simulate lets a world live, and answers it.
func simulate(t *testing.T, p plan) (w *world) {
	cryptotest.SetGlobalRandom(t, p.seed)
	disks := foundedDisks(t, p.voters)
	dir := scratch(t)
	defer forget(dir)
	forgiving(func() {
		synctest.Test(t, func(*testing.T) {
			w = newWorld(p, filepath.Join(dir, "w"))
			w.live(disks)
		})
	})
	return w
}

// forget removes a world. Clients leave their journals mapped when they end, which keeps the files for as long as the process lasts: what
// is in them is freed.
func forget(dir string) {
	journals, err := filepath.Glob(filepath.Join(dir, "*", keptJournals, "*"))
	must(err)
	for _, name := range journals {
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		must(err)
		info, err := file.Stat()
		must(err)
		_ = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, max(1, info.Size())) // not on all file systems
		must(file.Close())
	}
	entries, err := os.ReadDir(dir)
	must(err)
	for _, entry := range entries {
		must(os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
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
	forFlag  = flag.Duration("sim.for", 0, "for how long worlds are simulated, one after the other; 0: those of the seeds that are kept")
	fromFlag = flag.Uint64("sim.from", 0, "the first of their seeds; 0: any. Also of power cuts, from 0 on")
	cutsFlag = flag.Int("sim.cuts", 8, "how often the power is cut in each kind of write")
)

// TestWorlds simulates worlds, and requires of each what the package comment says.
func TestWorlds(t *testing.T) { testWorlds(t, kept, usual) }

// TestLockWorlds is TestWorlds for locks.
func TestLockWorlds(t *testing.T) { testWorlds(t, keptOfLocks, withLockers) }

func testWorlds(t *testing.T, kept []uint64, of func(seed uint64) plan) {
	f := &figures{began: time.Now(), did: make(map[string]int)}
	entry := ledger.New(ledger.Worlds)
	for seed := range seeds(kept) {
		if t.Failed() || *forFlag != 0 && time.Since(f.began) >= *forFlag {
			break
		}
		p := of(seed)
		if f.worlds == 0 {
			entry.FirstSeed = seed
		}
		entry.LastSeed = seed
		p.logs = *logFlag != ""
		w := simulate(t, p)
		f.add(w)
		if p.logs {
			must(os.WriteFile(*logFlag, bytes.ReplaceAll(w.log.Bytes(), []byte(w.dir+"/"), nil), 0o600)) // the same from wherever it was
		}
		if *seedFlag != 0 {
			t.Logf("digest %s", w.digest())
		}
		if err := w.check(); errors.Is(err, history.ErrUndecided) {
			f.undecided++
		} else if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			entry.Findings = append(entry.Findings, fmt.Sprintf("-run %s -sim.seed %d", t.Name(), seed))
		}
	}
	t.Log(f)
	f.enter(entry)
	must(entry.Add())
}

// seeds are those that the flags ask for, or else those that are kept.
func seeds(kept []uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		switch {
		case *seedFlag != 0:
			yield(*seedFlag)
			return
		case *forFlag == 0:
			slices.Values(kept)(yield)
			return
		}
		first := *fromFlag
		if first == 0 {
			first = rand.Uint64N(math.MaxUint64 / 2)
		}
		seed := first
		for yield(seed) {
			seed++
		}
	}
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
	if w.lockers > 0 {
		f.histories++
	}
	f.simulated += time.Duration(w.settled)
	if w.recovery > f.recovery {
		f.recovery, f.slowest = w.recovery, w.seed
	}
	for what, n := range w.did {
		f.did[what] += n
	}
}

// enter says it to a ledger.
func (f *figures) enter(e *ledger.Entry) {
	e.Histories, e.Undecided, e.Operations = int64(f.histories), int64(f.undecided), int64(f.did["calls"])
	e.Counts["worlds"], e.Counts["simulated seconds"] = int64(f.worlds), int64(f.simulated.Seconds())
	for what, n := range f.did {
		if isHarm := slices.ContainsFunc(harms, func(h harm) bool { return h.name == what }); isHarm {
			e.Faults[what] = int64(n)
		} else {
			e.Counts[what] = int64(n)
		}
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
