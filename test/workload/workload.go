// Package workload keeps hosts busy with a checked workload: several histories at a time (see package
// history), recorded on all hosts, while the test injects faults.
//
// The clients of a history are processes of the test binary, so TestMain must call history.Main.
package workload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// CheckTime limits the check of one history. On an idle machine most take well below a second; one with many
// calls of unknown outcome takes longer.
const CheckTime = 2 * time.Minute

const longestPause = 100 * time.Millisecond

// A Bustle is a workload of histories of one kind, each in its own directory. Set the first fields before the
// start.
type Bustle struct {
	Cluster *testcluster.Cluster
	Hosts   []*hosts.Host
	Name    string   // prefix of its directories and records
	Seed    uint64   // of the first history; each has its own
	AtOnce  int      // histories at a time
	Clients int      // of a history, on each host
	Calls   int      // of a client in a history
	Files   []string // locked files in each directory; none: another workload
	Holds   int      // of a client, with creations and locks; 0: another workload

	DisksFill bool     // servers may run out of space meanwhile
	Removed   []string // hosts without membership and permissions for some time
	Unsettled []string // those whose mounts ended before failed calls were undone

	ctx     context.Context // of the running histories; nil: they end by themselves
	mu      sync.Mutex
	dirs    []string
	inodes  []string // of the files, in the order of the directories
	records []string
	looks   int
}

// Start begins. The caller calls stop to end after the current histories.
func (b *Bustle) Start(t testing.TB) (stop func()) {
	var stopped atomic.Bool
	var playing sync.WaitGroup
	failures := make(chan error, b.AtOnce)
	ctx, abandon := context.WithCancel(context.Background())
	b.ctx = ctx
	t.Cleanup(func() { // the end of a failed test
		stopped.Store(true)
		abandon()
		playing.Wait()
		b.keepRecords(t)
	})
	for lane := range b.AtOnce {
		playing.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				err := b.Record(fmt.Sprintf("%s%d-%d", b.Name, lane, n), b.Seed+uint64(n*b.AtOnce+lane))
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	return func() {
		t.Helper()
		stopped.Store(true)
		playing.Wait()
		close(failures)
		for err := range failures {
			t.Error(err)
		}
	}
}

// keepRecords keeps the records beside the other files of a failed test.
func (b *Bustle) keepRecords(t testing.TB) {
	if !t.Failed() {
		return
	}
	for _, record := range b.records {
		text, err := os.ReadFile(record)
		if err == nil {
			err = os.WriteFile(filepath.Join(t.ArtifactDir(), filepath.Base(record)), text, 0o666)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// Record records one history.
func (b *Bustle) Record(name string, seed uint64) error {
	dir, err := b.makeDir(name)
	if err != nil {
		return err
	}
	failures := make([]error, len(b.Hosts)*b.Clients)
	var playing sync.WaitGroup
	for client := range failures {
		host := b.Hosts[client/b.Clients]
		plan := &history.Plan{
			Host: host.Name(), Record: b.newRecord(fmt.Sprintf("%s-%d.calls", name, client)), Dirs: []string{dir}, Client: client,
			Seed: seed, Calls: b.Calls, Pause: int(longestPause.Milliseconds()),
			Files: b.Files, Holds: b.Holds,
		}
		playing.Go(func() { failures[client] = b.runPlan(host, plan) })
	}
	playing.Wait()
	for _, failure := range failures {
		if failure != nil {
			return failure
		}
	}
	return nil
}

// makeDir creates a directory and its files exclusively, like a lock, on any host that succeeds. Each attempt
// has another name, because a failed one may be undone later.
func (b *Bustle) makeDir(name string) (string, error) {
	ctx, cancel := b.patient(hosts.Patience)
	defer cancel()
	var err error
	for attempt := 0; ctx.Err() == nil; attempt++ { // some fail at once
		dir := b.Cluster.Path(fmt.Sprintf("%s.%d", name, attempt))
		host := b.Hosts[attempt%len(b.Hosts)]
		const script = `set -C; mkdir "$0" && cd "$0" && for f; do : > "$f" && stat -c %i "$f" || exit; done`
		var inodes string
		if inodes, err = host.RunContext(ctx, "sh", append([]string{"-c", script, dir}, b.Files...)...); err == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dirs = append(b.dirs, dir)
			b.inodes = append(b.inodes, strings.Fields(inodes)...)
			return dir, nil
		}
	}
	return "", fmt.Errorf("no host could make a directory in %v; last: %w", hosts.Patience, err)
}

func (b *Bustle) newRecord(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	path := filepath.Join(b.Cluster.Net.Dir(), name)
	b.records = append(b.records, path)
	return path
}

func (b *Bustle) runPlan(host *hosts.Host, plan *history.Plan) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := b.patient(2 * hosts.Patience)
	defer cancel()
	_, err = host.RunContext(ctx, self, plan.Args()...)
	if len(plan.Files) > 0 && history.Killed(err) {
		return nil
	}
	return err
}

func (b *Bustle) patient(patience time.Duration) (context.Context, context.CancelFunc) {
	ctx := b.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithTimeout(ctx, patience)
}

// AwaitPlaying waits until the first clients have made calls, so the first fault hits them.
func (b *Bustle) AwaitPlaying(t testing.TB) {
	t.Helper()
	const much = 5000 // bytes
	hosts.Eventually(t, "all clients play", func() (string, bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		playing := 0
		for _, record := range b.records {
			if info, err := os.Stat(record); err == nil && info.Size() > much {
				playing++
			}
		}
		return fmt.Sprint(playing), playing >= b.AtOnce*len(b.Hosts)*b.Clients
	})
}

// AwaitBegun waits until a history has begun.
func (b *Bustle) AwaitBegun(t testing.TB) {
	t.Helper()
	hosts.Eventually(t, "a history has begun", func() (string, bool) { return b.Name, b.Dirs() > 0 })
}

// Dirs returns the number of directories, which is the number of histories.
func (b *Bustle) Dirs() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.dirs)
}

// Check reads everything from all hosts until all undo is done, and requires an order that explains all
// results. It returns the calls. If the search takes too long for a directory, undecided is an error.
func (b *Bustle) Check(t testing.TB) (checked *history.History, undecided error) {
	t.Helper()
	hosts.Eventually(t, "an order in which everything can have happened", func() (string, bool) {
		settled := history.Now()
		b.look(t)
		calls, err := history.ReadCalls(b.records...)
		require.NoError(t, err)
		for _, call := range calls {
			if call.Kind != history.Link { // this is the error for a directory
				b.judgeRight(&call.Record)
			}
			if call.Unknown() && slices.Contains(b.Unsettled, call.Host) {
				call.End = 0
			}
		}
		checked, undecided = &history.History{Calls: calls, Settled: settled, DisksFill: b.DisksFill}, nil
		require.Empty(t, checked.Interrupted(), "calls that a signal interrupted")
		if err := checked.Check(CheckTime); err != nil {
			if onlyUndecided(err) {
				undecided = err
				return "", true
			}
			return err.Error(), false
		}
		return "", true
	})
	return checked, undecided
}

// judgeRight treats a refusal for lack of membership like a lost session: the call may have been done before.
func (b *Bustle) judgeRight(call *history.Record) {
	if call.Errno == syscall.EPERM && slices.Contains(b.Removed, call.Host) {
		call.Errno = syscall.EIO
	}
}

// look reads everything from each host.
func (b *Bustle) look(t testing.TB) {
	t.Helper()
	b.looks++
	for i, host := range b.Hosts {
		plan := &history.Plan{
			Host: host.Name(), Dirs: b.dirs, Client: len(b.Hosts)*b.Clients + i, Final: true,
			Record: b.newRecord(fmt.Sprintf("%slook-%d-%s.calls", b.Name, b.looks, host.Name())),
		}
		require.NoError(t, b.runPlan(host, plan))
	}
}

// Forget removes records and directories, unless they are needed for analysis.
func (b *Bustle) Forget(t testing.TB) {
	t.Helper()
	if t.Failed() {
		return
	}
	for _, record := range b.records {
		require.NoError(t, os.Remove(record))
	}
	if len(b.dirs) > 0 {
		b.Hosts[0].MustRun(t, "rm", append([]string{"-rf"}, b.dirs...)...)
	}
	b.dirs, b.inodes, b.records = nil, nil, nil
}
