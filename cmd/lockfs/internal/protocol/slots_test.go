package protocol

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockfs/cluster/process"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"

	"github.com/stretchr/testify/require"
)

// TestRunSlots: as many run at a time as there are slots, and all do.
func TestRunSlots(t *testing.T) {
	const processes, count = 10, 3
	for _, format := range []string{"pid", "semaphore", "swarm"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			log := d.path + ".log"
			var wait sync.WaitGroup
			for range processes {
				wait.Go(func() {
					done := clitest.Execute(t, d.environment(), d.program, "run", d.path, "--slots", fmt.Sprint(count), "--format", format, "--",
						"sh", "-c", `echo + >> "$LOCK.log"
						until [ "$(grep -c + "$LOCK.log")" -ge 3 ]; do sleep 0.01; done # the first wait for each other
						sleep 0.1; echo - >> "$LOCK.log"`)
					require.Equal(t, 0, done.Code, done.Stderr)
				})
			}
			wait.Wait()
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			inside, most := 0, 0
			for line := range strings.Lines(string(text)) {
				if line == "+\n" {
					inside++
				} else {
					inside--
				}
				most = max(most, inside)
			}
			require.Equal(t, count, most)
			require.Len(t, string(text), 4*processes)
			left, err := filepath.Glob(filepath.Join(d.path, "[^.]*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestNobodyLooksAtSlotsAfterTheWait: the next attempt removes what was looked at last.
func TestNobodyLooksAtSlotsAfterTheWait(t *testing.T) {
	s := &slots{dir: t.TempDir(), count: 100}
	for number := 1; number <= s.count; number++ {
		require.NoError(t, os.WriteFile(s.path(number), []byte("held"), 0o600))
	}
	lookers := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "formats.Wait(")
	}
	returned := make(chan int)
	go func() {
		s.awaitOne(t.Context())
		returned <- lookers()
	}()
	require.Eventually(t, func() bool { return lookers() == s.count }, time.Minute, time.Millisecond)
	require.NoError(t, os.Remove(s.path(1)))
	require.Zero(t, <-returned)
}

// keptSlot is a lock that was taken and could not be given back.
type keptSlot struct{ runLock }

func (keptSlot) acquire(context.Context) (string, error) {
	return "", cli.Exit(cli.ExitBlocked, fmt.Errorf("lost: %w", errNotReleased))
}

// TestASlotThatIsNotReleasedIsTold and not passed over for the next.
func TestASlotThatIsNotReleasedIsTold(t *testing.T) {
	opened := 0
	s := &slots{dir: t.TempDir(), count: 3, wait: forEver, open: func(string) (runLock, error) { opened++; return keptSlot{}, nil }}
	_, err := s.acquire(t.Context())
	require.ErrorIs(t, err, errNotReleased)
	require.Equal(t, 1, opened)
}

// TestRunSlotsPassAStoppedWaiter: the first process in the line is stopped, as by Ctrl-Z; the next one gets the slot.
func TestRunSlotsPassAStoppedWaiter(t *testing.T) {
	d := newLockDir(t)
	flags := []string{"--slots", "1", "--format", "pid"}
	holder := d.start(untilTerminated, flags...)
	first := exec.Command(d.program, "run", d.path, "--slots", "1", "--format", "pid", "--", "touch", d.path+"/first")
	first.Env = clitest.Environment(d.environment()...)
	require.NoError(t, first.Start())
	awaitWatching(t, first)
	workers := process.Descendants(first.Process.Pid)
	require.Len(t, workers, 1)
	require.NoError(t, syscall.Kill(workers[0], syscall.SIGSTOP))
	require.NoError(t, holder.cmd.Process.Signal(syscall.SIGTERM))
	holder.end()
	done := d.lockfs("run LOCK --slots 1 --format pid --wait 1m -- true")
	require.Equal(t, 0, done.Code, done.Stderr)
	require.NoFileExists(t, d.path+"/first")
	require.NoError(t, syscall.Kill(workers[0], syscall.SIGCONT))
	require.NoError(t, first.Wait())
	require.FileExists(t, d.path+"/first")
}

// TestRunSlotsWait: a process that finds no slot waits as long as it may; the slot of a killed process becomes free.
func TestRunSlotsWait(t *testing.T) {
	d := newLockDir(t)
	flags := []string{"--slots", "2", "--format", "pid"}
	first, second := d.start(untilTerminated, flags...), d.start(untilTerminated, flags...)
	for wait, code := range map[string]int{"--nonblock": cli.ExitBlocked, "--wait 0s": cli.ExitBlocked, "--wait 30ms": cli.ExitTimedOut} {
		done := d.lockfs("run LOCK --slots 2 --format pid " + wait + " -- true")
		require.Equal(t, code, done.Code, done.Stderr)
		require.Contains(t, done.Stderr, "all 2 slots")
	}
	ended := make(chan clitest.Outcome, 1)
	go func() { ended <- d.lockfs("run LOCK --slots 2 --format pid -- true") }()
	require.NoError(t, first.cmd.Process.Kill())
	first.end()
	done := <-ended
	require.Equal(t, 0, done.Code, done.Stderr)
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGTERM))
	second.end()
}
