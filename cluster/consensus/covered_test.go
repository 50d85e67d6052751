package consensus

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestAFollowerGoesOnBehindASnapshotOfTheLeaders which has an entry behind it that was never committed: a new leader has another one there.
func TestAFollowerGoesOnBehindASnapshotOfTheLeaders(t *testing.T) {
	first := newSetup(t).start(t)
	first.mustCreate(t, "a")
	first.mustCreate(t, "b")
	first.snapshot(t)
	meta, state, err := first.files.snapshots.Open(first.snapshotID(t))
	require.NoError(t, err)
	s := newSetup(t)
	s.claim.Bootstrap = false
	follower, err := s.openUnjoined(t)
	require.NoError(t, err)

	leader := newTransport(listen(t), "leader", NewAddresses(), first.files, NewWithdrawal(), quietLogger())
	t.Cleanup(func() { _ = leader.(raft.WithClose).Close() })
	to := follower.Transport.LocalAddr()
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("leader"), Addr: []byte(leader.LocalAddr())}
	installed := new(raft.InstallSnapshotResponse)
	require.NoError(t, leader.InstallSnapshot(follower.id, to, &raft.InstallSnapshotRequest{
		RPCHeader: header, SnapshotVersion: meta.Version, Term: meta.Term, LastLogIndex: meta.Index, LastLogTerm: meta.Term,
		Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex, Size: meta.Size,
	}, installed, state))
	require.True(t, installed.Success)

	send := func(term, previous, previousTerm uint64, terms ...uint64) bool {
		t.Helper()
		request := &raft.AppendEntriesRequest{RPCHeader: header, Term: term, PrevLogEntry: previous, PrevLogTerm: previousTerm}
		for i, term := range terms {
			request.Entries = append(request.Entries, &raft.Log{Index: previous + uint64(i) + 1, Term: term, Type: raft.LogNoop})
			request.LeaderCommitIndex = previous + uint64(i)
		}
		response := new(raft.AppendEntriesResponse)
		require.NoError(t, leader.AppendEntries(follower.id, to, request, response))
		return response.Success
	}
	old, newer, last := meta.Term, meta.Term+1, meta.Index
	require.True(t, send(old, last, old, old), "an entry that is not committed")
	require.False(t, send(newer, last+1, newer, newer), "it has another one there")
	require.False(t, send(newer, last, old+5, newer), "a snapshot of another history")
	require.True(t, send(newer, last-1, old, old), "what the snapshot has")
	require.Equal(t, last+1, follower.LastIndex())
	require.True(t, send(newer, last, old, newer, newer))
	require.True(t, send(newer, last-2, old, old, old, newer, newer, newer))
	require.Equal(t, last+3, follower.LastIndex())
	require.Eventually(t, func() bool { return follower.AppliedIndex() == last+2 }, testWait, time.Millisecond)
	require.Empty(t, follower.failed)
}

func (v *voter) snapshotID(t *testing.T) string {
	t.Helper()
	kept, err := v.files.snapshots.List()
	require.NoError(t, err)
	return kept[0].ID
}

// openUnjoined starts a node that waits for a leader, until the test ends.
func (s setup) openUnjoined(t *testing.T) (*voter, error) {
	v := &voter{failed: make(chan error, 10)}
	_, v.cancel = context.WithCancel(t.Context())
	s.Silence = NewWithdrawal()
	s.Fail = func(err error) { v.failed <- err }
	s.CannotApply = s.Fail
	var err error
	if v.dir, err = OpenDirectory(s.path, s.claim); err != nil {
		return nil, err
	}
	v.Raft, err = Open(v.dir, s.Config)
	t.Cleanup(func() { _ = v.close() })
	return v, err
}

// TestWhatASnapshotHasMakesNoDifference to a follower of which the log begins behind it: it takes what it would with all of its log, and
// calls nothing committed that the leader has not.
func TestWhatASnapshotHasMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOfN(rapid.Uint64Range(1, 3), 1, 8).Draw(t, "leader's terms")
		slices.Sort(terms)
		leader := append([]uint64{0}, terms...) // by index
		covered := rapid.IntRange(0, len(leader)-1).Draw(t, "covered by the snapshot")
		others := rapid.SliceOfN(rapid.Uint64Range(leader[covered], 3), 0, 5).Draw(t, "follower's terms behind it")
		slices.Sort(others)
		follower := append(slices.Clone(leader[:covered+1]), others...)
		previous := rapid.IntRange(0, len(leader)-1).Draw(t, "previous")
		end := rapid.IntRange(previous, len(leader)-1).Draw(t, "end")
		commit := rapid.IntRange(covered, len(leader)-1).Draw(t, "commit")
		message := &raft.AppendEntriesRequest{
			PrevLogEntry: uint64(previous), PrevLogTerm: leader[previous], LeaderCommitIndex: uint64(commit),
		}
		for index := previous + 1; index <= end; index++ {
			message.Entries = append(message.Entries, &raft.Log{Index: uint64(index), Term: leader[index]})
		}
		want, _, _ := appendTo(follower, 0, *message)
		before := *message
		skipCovered(message, position{uint64(covered), leader[covered]})
		if covered == 0 || previous > covered || previous < covered && end == previous {
			require.Equal(t, before, *message)
			return
		}
		got, committed, taken := appendTo(follower, covered, *message)
		require.True(t, taken)
		require.Equal(t, want, got)
		require.Equal(t, leader[:committed+1], got[:committed+1])
	})
}

// appendTo does what raft does with a message, if the log begins behind an index.
func appendTo(log []uint64, behind int, message raft.AppendEntriesRequest) (after []uint64, committed uint64, taken bool) {
	after = slices.Clone(log)
	has := func(index uint64) bool {
		return index < uint64(len(after)) && (index > uint64(behind) || index == uint64(len(after)-1))
	}
	if at := message.PrevLogEntry; at > 0 && (!has(at) || after[at] != message.PrevLogTerm) {
		return after, 0, false
	}
	for _, entry := range message.Entries {
		if entry.Index < uint64(len(after)) {
			if entry.Index <= uint64(behind) {
				return after, 0, false
			}
			if after[entry.Index] == entry.Term {
				continue
			}
			after = after[:entry.Index]
		}
		after = append(after, entry.Term)
	}
	return after, min(message.LeaderCommitIndex, uint64(len(after)-1)), true
}
