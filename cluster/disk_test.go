package cluster

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// testDisk is one that nobody watches.
func testDisk() (d *disk, failed chan error) {
	failed = make(chan error, 1)
	return newDisk("data", func(err error) { failed <- err }, newWithdrawal()), failed
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
			require.True(t, d.silence.kept())
		})
	}
	require.Less(t, leaderDiskTicks*diskTick, DefaultOpTimeout/2, "an operation has time to be done by another leader")
}

// hangingLog stores nothing while it hangs.
type hangingLog struct {
	raft.LogStore
	hangs *atomic.Pointer[chan struct{}] // closed when it goes on
}

func (l hangingLog) StoreLogs(entries []*raft.Log) error {
	if goOn := l.hangs.Load(); goOn != nil {
		<-*goOn
	}
	return l.LogStore.StoreLogs(entries)
}

// TestALeaderWhoseDiskHangsIsSucceeded has an operation under way when the leader's disk hangs. It is done within its time, and
// nobody hears of the old leader any more.
func TestALeaderWhoseDiskHangsIsSucceeded(t *testing.T) {
	t.Parallel()
	hangs := make(map[string]*atomic.Pointer[chan struct{}])
	var nodes []*Node
	for _, name := range []string{"n0", "n1", "n2"} {
		var join []string
		if len(nodes) > 0 {
			join = []string{nodes[0].cfg.APIAddress}
		}
		cfg := testConfig(t, name, join...)
		hang := new(atomic.Pointer[chan struct{}])
		cfg.entries = func(log raft.LogStore) raft.LogStore { return hangingLog{log, hang} }
		hangs[name] = hang
		nodes = append(nodes, startNode(t, cfg))
	}
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(nodes, func(n *Node) bool { return n == leader })
	client, err := others[0].OpenClient(t.Context(), ClientConfig{Host: "h", Logger: quietLogger()})
	require.NoError(t, err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	}()
	require.Equal(t, storepb.Code_OK, create(t, client, "before"))
	goOn := make(chan struct{})
	hangs[leader.cfg.Name].Store(&goOn)
	defer close(goOn)
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	require.Equal(t, storepb.Code_OK, lookup(t, client, "before"))
	select {
	case err := <-leader.Failed():
		require.ErrorContains(t, err, "the disk has not answered")
	case <-time.After(testWait):
		t.Fatal("the process goes on")
	}
	require.NotSame(t, leader, leaderOf(t, others))
	require.Zero(t, leader.leadership.office())
	require.Eventually(t, func() bool { return others[0].probe(leader.self(), probeTimeout) == 0 }, testWait, 10*time.Millisecond)
}

// countingSink is where a snapshot goes that nobody keeps.
type countingSink struct {
	raft.SnapshotSink
	written int
}

func (s *countingSink) Write(b []byte) (int, error) {
	s.written += len(b)
	return len(b), nil
}

// TestSnapshotsReachTheDiskInPieces keeps a write of the log from having to wait for a whole snapshot.
func TestSnapshotsReachTheDiskInPieces(t *testing.T) {
	to := new(countingSink)
	synced, syncs := 0, 0
	failure := error(nil)
	sink := &snapshotSink{SnapshotSink: to, sync: func() error {
		require.LessOrEqual(t, to.written-synced, snapshotPiece+1000)
		synced, syncs = to.written, syncs+1
		return failure
	}}
	for to.written < 5*snapshotPiece {
		_, err := sink.Write(make([]byte, 1000))
		require.NoError(t, err)
	}
	require.Equal(t, 4, syncs)
	failure = errors.New("the disk is full")
	var err error
	for err == nil {
		_, err = sink.Write(make([]byte, 1000))
	}
	require.ErrorIs(t, err, failure)
	require.Equal(t, 5, syncs)

	cfg := testConfig(t, "a")
	node := startNode(t, cfg)
	var store raft.SnapshotStore = node.storage.snapshots
	_, trans := raft.NewInmemTransport("")
	stored, err := store.Create(1, 1000, 1, raft.Configuration{}, 1, trans)
	require.NoError(t, err)
	require.NoError(t, stored.(*snapshotSink).sync())
	require.NoError(t, stored.Cancel())
	left, err := filepath.Glob(filepath.Join(cfg.DataDir, snapshotDir, "*"+unfinished))
	require.NoError(t, err)
	require.Empty(t, left)
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

// TestANodeWhoseDiskFailsEndsInOrder has raft want to keep a new term, as it does when others elect one of them. It would panic
// if it was told that it cannot.
func TestANodeWhoseDiskFailsEndsInOrder(t *testing.T) {
	cfg := testConfig(t, "a")
	fails := new(atomic.Bool)
	cfg.entries = func(log raft.LogStore) raft.LogStore { return failingLog{log, fails} }
	node, err := Open(cfg)
	require.NoError(t, err)
	require.NoError(t, node.WaitReady(t.Context()))
	fails.Store(true)
	node.raft.Apply([]byte("lost"), 0)
	require.ErrorContains(t, <-node.Failed(), "input/output error")
	goesOn, ended := false, make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		_ = node.storage.votes.SetUint64([]byte(keyCurrentTerm), node.raft.CurrentTerm()+1)
		goesOn = true
	}()
	require.Nil(t, <-ended)
	require.False(t, goesOn)

	closed := make(chan error, 1)
	go func() { closed <- node.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(testWait):
		t.Fatal("it does not end")
	}
}

// TestASnapshotOnItsWayEndsWithSilence has a follower be in the middle of one, when it can do nothing else.
func TestASnapshotOnItsWayEndsWithSilence(t *testing.T) {
	logger := quietLogger()
	silence := newWithdrawal()
	open := func() raft.Transport {
		address := testConfig(t, "a").RaftAddress
		opened, err := newTransport(address, nil, silence, logger)
		require.NoError(t, err)
		t.Cleanup(func() { _ = opened.(raft.WithClose).Close() })
		return opened
	}
	leader, follower := open(), open()
	const size = 1 << 30
	sent := make(chan error, 1)
	go func() {
		request := &raft.InstallSnapshotRequest{Size: size}
		sent <- leader.InstallSnapshot("b", follower.LocalAddr(), request, new(raft.InstallSnapshotResponse), zeros{})
	}()
	rpc := <-follower.Consumer()
	_, err := io.ReadFull(rpc.Reader, make([]byte, 1<<20))
	require.NoError(t, err)
	silence.begin()
	received, err := io.Copy(io.Discard, rpc.Reader)
	require.Less(t, received, int64(size-1<<20), err)
	rpc.Respond(new(raft.InstallSnapshotResponse), nil)
	require.ErrorIs(t, <-sent, errSilent)
}

// zeros are without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
