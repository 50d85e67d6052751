package consensus

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestASnapshotOnItsWayEndsWithSilence has a follower be in the middle of one, when it can do nothing else.
func TestASnapshotOnItsWayEndsWithSilence(t *testing.T) {
	logger := quietLogger()
	silence := NewStepDown()
	files := &storage{logs: newParallelLog(raft.NewInmemStore()), space: newDiskReserve("", 0, logger), snapshots: new(snapshotStore)}
	open := func() raft.Transport {
		opened := newTransport(&Config{Network: listen(t), Addresses: NewLearnedAddresses(), StepDown: silence, Logger: logger}, directoryOf(""), files)
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
	whoIsThere := <-follower.(transport).network.Consumer()
	whoIsThere.Respond(answerOf("b"), nil)
	rpc := <-follower.(transport).network.Consumer()
	_, err := io.ReadFull(rpc.Reader, make([]byte, 1<<20))
	require.NoError(t, err)
	silence.Begin()
	received, err := io.Copy(io.Discard, rpc.Reader)
	require.Less(t, received, int64(size-1<<20), err)
	rpc.Respond(new(raft.InstallSnapshotResponse), nil)
	require.ErrorIs(t, <-sent, errSteppedDown)
}

func answerOf(id string) *raft.RequestPreVoteResponse {
	return &raft.RequestPreVoteResponse{RPCHeader: raft.RPCHeader{ID: []byte(id)}}
}

// TestAnotherServersAnswersCountForNothing has "c" answer where "b" was.
func TestAnotherServersAnswersCountForNothing(t *testing.T) {
	addresses := NewLearnedAddresses()
	files := &storage{logs: newParallelLog(raft.NewInmemStore()), space: newDiskReserve("", 0, quietLogger()), snapshots: new(snapshotStore)}
	open := func() raft.Transport {
		opened := newTransport(&Config{Network: listen(t), Addresses: addresses, StepDown: NewStepDown(), Logger: quietLogger()}, directoryOf("a"), files)
		t.Cleanup(func() { _ = opened.(raft.WithClose).Close() })
		return opened
	}
	a, c := open(), open()
	go func() {
		header := raft.RPCHeader{ID: []byte("c")}
		for rpc := range c.(transport).network.Consumer() {
			switch rpc.Command.(type) {
			case *raft.RequestVoteRequest:
				rpc.Respond(&raft.RequestVoteResponse{RPCHeader: header, Granted: true}, nil)
			case *raft.RequestPreVoteRequest:
				rpc.Respond(answerOf("c"), nil)
			case *raft.AppendEntriesRequest:
				rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: header, Success: true}, nil)
			}
		}
	}()
	at := c.LocalAddr()
	vote, entries := new(raft.RequestVoteRequest), new(raft.AppendEntriesRequest)
	const other = `answers "c"`
	require.ErrorContains(t, a.RequestVote("b", at, vote, new(raft.RequestVoteResponse)), other)
	require.NoError(t, a.RequestVote("c", at, vote, new(raft.RequestVoteResponse)))
	require.ErrorContains(t, a.AppendEntries("b", at, entries, new(raft.AppendEntriesResponse)), other)
	require.NoError(t, a.AppendEntries("c", at, entries, new(raft.AppendEntriesResponse)))
	require.ErrorContains(t, a.InstallSnapshot("b", at, new(raft.InstallSnapshotRequest), new(raft.InstallSnapshotResponse), zeros{}), other)
	for id, accepted := range map[raft.ServerID]bool{"b": false, "c": true} {
		pipeline, err := a.AppendEntriesPipeline(id, at)
		require.NoError(t, err)
		_, err = pipeline.AppendEntries(entries, new(raft.AppendEntriesResponse))
		require.NoError(t, err)
		if accepted {
			require.True(t, (<-pipeline.Consumer()).Response().Success)
			require.NoError(t, pipeline.Close())
			continue
		}
		require.Eventually(t, func() bool {
			_, err := pipeline.AppendEntries(entries, new(raft.AppendEntriesResponse))
			return err != nil
		}, testWait, time.Millisecond)
		require.Empty(t, pipeline.Consumer(), "any answer would count as having heard b")
	}

	addresses.Learn(raft.Server{ID: "c", Address: "127.0.0.1:1"}, at)
	require.NoError(t, a.RequestVote("c", "127.0.0.1:1", vote, new(raft.RequestVoteResponse)), "where it was met")
	addresses.Learn(raft.Server{ID: "b", Address: "127.0.0.1:1"}, at)
	require.ErrorContains(t, a.RequestVote("b", "127.0.0.1:1", vote, new(raft.RequestVoteResponse)), other)
	require.Equal(t, raft.ServerAddress("127.0.0.1:1"), addresses.Of("b", "127.0.0.1:1"), "it was not met there again")
	require.Equal(t, at, addresses.Of("c", "127.0.0.1:1"))
	require.Equal(t, raft.ServerAddress("127.0.0.1:2"), addresses.Of("c", "127.0.0.1:2"), "the configuration has another one since")
}

// TestAServerThatGoesBackIsNotLookedForWhereItWas has one move and go back, as the configuration says,
// while nobody looks for it.
func TestAServerThatGoesBackIsNotLookedForWhereItWas(t *testing.T) {
	addresses := NewLearnedAddresses()
	configure := func(at raft.ServerAddress) {
		addresses.follow(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a:1"}, {ID: "b", Address: at}}})
	}
	configure("b:1")
	addresses.Learn(raft.Server{ID: "b", Address: "b:1"}, "b:2")
	configure("b:1")
	require.Equal(t, raft.ServerAddress("b:2"), addresses.Of("b", "b:1"), "others have changed")
	configure("b:2")
	configure("b:1")
	require.Equal(t, raft.ServerAddress("b:1"), addresses.Of("b", "b:1"))

	addresses.Learn(raft.Server{ID: "b", Address: "unknown-b"}, "b:3") // before that is written down
	configure("unknown-b")
	require.Equal(t, raft.ServerAddress("b:3"), addresses.Of("b", "unknown-b"))
}

// zeros are without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
