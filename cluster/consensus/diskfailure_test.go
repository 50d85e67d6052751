package consensus

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// testDisk is one that nobody watches.
func testDisk() (d *disk, failed chan error) {
	failed = make(chan error, 1)
	return newDisk("data", func(err error) { failed <- err }, NewStepDown(), newDiskReserve("data", 0, quietLogger())), failed
}

// TestADiskHangsForAsManyTicks has a write take long, while clocks may show what they like.
func TestADiskHangsForAsManyTicks(t *testing.T) {
	for name, leads := range map[string]bool{"leader": true, "follower": false} {
		t.Run(name, func(t *testing.T) {
			limit := diskTicks
			if leads {
				limit = leaderDiskTicks
			}
			d, failed := testDisk()
			for range 2 {
				require.NoError(t, d.do(func() error {
					for range limit - 1 {
						require.False(t, d.tick(leads))
					}
					return nil
				}))
				require.False(t, d.tick(leads), "nothing is being written")
			}
			_ = d.do(func() error {
				for range limit - 1 {
					require.False(t, d.tick(leads))
				}
				require.NoError(t, d.do(func() error { return nil }), "another write")
				require.True(t, d.tick(leads))
				return nil
			})
			require.ErrorContains(t, <-failed, "the disk has not answered")
			require.True(t, d.stepDown.Begun())
		})
	}
}

// fullDisk fails every write.
type fullDisk struct{ raft.LogStore }

func (fullDisk) StoreLogs([]*raft.Log) error { return errors.New("no space left on device") }

func (fullDisk) DeleteRange(uint64, uint64) error { return errors.New("input/output error") }

func TestLogOnAFailingDiskEndsTheNode(t *testing.T) {
	for want, write := range map[string]func(*watchedLog) error{
		"no space left":      func(log *watchedLog) error { return log.StoreLog(&raft.Log{}) },
		"input/output error": func(log *watchedLog) error { return log.DeleteRange(1, 2) },
	} {
		disk, failed := testDisk()
		require.Error(t, write(&watchedLog{fullDisk{}, disk}))
		require.NotEmpty(t, failed, want)
		require.ErrorContains(t, <-failed, want)
		require.True(t, disk.stepDown.Begun())
	}
}

// failingLog stores nothing once it fails.
type failingLog struct {
	raft.LogStore
	fails *atomic.Bool
}

func (l failingLog) StoreLogs(entries []*raft.Log) error {
	if l.fails.Load() {
		return errors.New("input/output error")
	}
	return l.LogStore.StoreLogs(entries)
}

// TestANodeWhoseDiskFailsEndsInOrder has raft want to keep a new term, as it does when others elect one
// of them. It would panic if it was told that it cannot.
func TestANodeWhoseDiskFailsEndsInOrder(t *testing.T) {
	cfg := newSetup(t)
	fails := new(atomic.Bool)
	cfg.Entries = func(log raft.LogStore) raft.LogStore { return failingLog{log, fails} }
	v := cfg.start(t)
	fails.Store(true)
	v.Apply([]byte("lost"), 0)
	require.ErrorContains(t, <-v.failed, "input/output error")
	goesOn, ended := false, make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		_ = v.files.votes.SetUint64([]byte(keyCurrentTerm), v.CurrentTerm()+1)
		goesOn = true
	}()
	require.Nil(t, <-ended)
	require.False(t, goesOn)

	closed := make(chan error, 1)
	go func() { closed <- v.close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(testWait):
		t.Fatal("it does not end")
	}
}

// TestANodeWhoseDiskFailsAsItBeginsSaysSo has each write fail of which raft waits for as it begins, one
// at a time.
func TestANodeWhoseDiskFailsAsItBeginsSaysSo(t *testing.T) {
	begun := newSetup(t)
	require.NoError(t, begun.start(t).close())
	for name, setup := range map[string]func() setup{"a new one": func() setup { return newSetup(t) }, "again": func() setup { return begun }} {
		t.Run(name, func(t *testing.T) {
			isRefused := false
			for failing, all := int64(1), false; !all; failing++ {
				cfg, writes := setup(), new(atomic.Int64)
				cfg.Writing = func(write func() error) error {
					if writes.Add(1) == failing {
						return syscall.EIO
					}
					return write()
				}
				v, err := cfg.open(t.Context())
				if err == nil {
					all = writes.Load() < failing
					require.NoError(t, v.close())
					continue
				}
				isRefused = true
				if !errors.Is(err, context.Canceled) {
					require.ErrorIs(t, err, syscall.EIO)
					require.ErrorContains(t, err, "write /", "it says which disk")
				}
			}
			require.True(t, isRefused)
		})
	}
}
