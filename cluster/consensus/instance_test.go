package consensus

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

// onlyInstance follows one process of each server.
type onlyInstance ids.Instance

var errOtherProcess = errors.New("another process of that server is followed")

// Follows is part of Instances.
func (o onlyInstance) Follows(_ raft.ServerID, instance ids.Instance) bool {
	return instance == ids.Instance(o)
}

// Follow is part of Instances.
func (onlyInstance) Follow(raft.ServerID, raft.ServerAddress, ids.Instance) error {
	return errOtherProcess
}

// instanceTransport is that of a process of the server b, which follows one process of every other.
func instanceTransport(t *testing.T, own, follows ids.Instance) transport {
	files := &storage{logs: newParallelLog(raft.NewInmemStore()), space: newDiskReserve("", 0, quietLogger()), snapshots: new(snapshotStore)}
	cfg := &Config{Network: listen(t), Addresses: NewLearnedAddresses(), Instances: onlyInstance(follows), StepDown: NewStepDown(), Logger: quietLogger()}
	opened := newTransport(cfg, &Directory{Identity: Identity{ID: "b", Starts: []ids.Instance{own}}}, files).(transport)
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// TestOnlyOneProcessOfAServerCounts has a candidate and a leader, a, hear answers of the processes 1 and
// 2 of the server b.
func TestOnlyOneProcessOfAServerCounts(t *testing.T) {
	t.Parallel()
	a := instanceTransport(t, 7, 1)
	for instance, counts := range map[ids.Instance]bool{1: true, 2: false, 0: false} {
		b := instanceTransport(t, instance, 7)
		header := b.header()
		go func() {
			for rpc := range b.network.Consumer() {
				switch rpc.Command.(type) {
				case *raft.RequestVoteRequest:
					rpc.Respond(&raft.RequestVoteResponse{RPCHeader: header, Granted: true}, nil)
				case *raft.RequestPreVoteRequest:
					rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: header, Granted: true}, nil)
				case *raft.AppendEntriesRequest:
					rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: header, Success: true}, nil)
				}
			}
		}()
		at := b.LocalAddr()
		for what, err := range map[string]error{
			"vote":     a.RequestVote("b", at, &raft.RequestVoteRequest{RPCHeader: a.header()}, new(raft.RequestVoteResponse)),
			"pre-vote": a.RequestPreVote("b", at, &raft.RequestPreVoteRequest{RPCHeader: a.header()}, new(raft.RequestPreVoteResponse)),
			"entries":  a.AppendEntries("b", at, &raft.AppendEntriesRequest{RPCHeader: a.header()}, new(raft.AppendEntriesResponse)),
			"call":     a.identify("b", at),
		} {
			if counts {
				require.NoError(t, err, what)
			} else {
				require.ErrorIs(t, err, errOtherProcess, what)
			}
		}
	}
}

// TestRequestsOfAnotherProcessAreRefused sends a follower requests of the processes 1 and 2 of a leader.
func TestRequestsOfAnotherProcessAreRefused(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	s.Instances = onlyInstance(1)
	v := s.start(t)
	for instance, counts := range map[ids.Instance]bool{1: true, 2: false} {
		other := instanceTransport(t, instance, v.dir.Instance())
		header := other.header()
		requests := map[string]error{
			"vote":    other.network.RequestVote("", v.Transport.LocalAddr(), &raft.RequestVoteRequest{RPCHeader: header}, new(raft.RequestVoteResponse)),
			"entries": other.network.AppendEntries("", v.Transport.LocalAddr(), &raft.AppendEntriesRequest{RPCHeader: header}, new(raft.AppendEntriesResponse)),
			"who is there": other.network.RequestPreVote("", v.Transport.LocalAddr(), &raft.RequestPreVoteRequest{RPCHeader: header},
				new(raft.RequestPreVoteResponse)),
		}
		for what, err := range requests {
			if counts || what == "who is there" {
				require.NoError(t, err, what)
			} else {
				require.ErrorContains(t, err, errOtherProcess.Error(), what)
			}
		}
	}
}

func TestStartsOfADataDirectory(t *testing.T) {
	t.Parallel()
	d := &Directory{Identity: Identity{ID: "a"}}
	require.Zero(t, d.Instance())
	d.Identity = d.drawInstance()
	first := d.Instance()
	for range MaxStarts - 2 {
		d.Identity = d.drawInstance()
	}
	require.True(t, d.Continues(first), "a server that is far behind knows this one only")
	require.True(t, d.Continues(d.Instance()))
	require.False(t, d.Continues(first+1))
	for range MaxStarts {
		d.Identity = d.drawInstance()
	}
	require.Len(t, d.Starts, MaxStarts)
	require.Len(t, d.Before(), MaxStarts-1)
	require.True(t, d.Continues(first), "it may have forgotten that")
}

func TestPeersInMessages(t *testing.T) {
	t.Parallel()
	own := instanceTransport(t, 0xabc, 1)
	address, instance := decodePeer(own.EncodePeer("b", "10.0.0.1:7420"))
	require.Equal(t, raft.ServerAddress("10.0.0.1:7420"), address)
	require.Equal(t, ids.Instance(0xabc), instance)
	for peer, at := range map[string]raft.ServerAddress{"10.0.0.1:1": "10.0.0.1:1", "b@10.0.0.1:1": "10.0.0.1:1", "b#x@[::1]:1": "[::1]:1", "": ""} {
		address, instance = decodePeer([]byte(peer))
		require.Equal(t, at, address)
		require.Zero(t, instance)
	}
}
