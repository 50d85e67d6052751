package consensus

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
)

// follower is a node that has not joined, with a test in place of its leader.
type follower struct {
	*voter
	setup  setup
	leader raft.Transport
	header raft.RPCHeader
}

func newFollower(t *testing.T) *follower {
	f := &follower{setup: newSetup(t)}
	f.setup.claim.Bootstrap, f.setup.claim.Joins = false, true
	files := &storage{logs: newParallelLog(raft.NewInmemStore()), space: newDiskReserve("", 0, quietLogger()), snapshots: new(snapshotStore)}
	f.leader = newTransport(&Config{Network: listen(t), Addresses: NewLearnedAddresses(), StepDown: NewStepDown(), Logger: quietLogger()}, directoryOf("leader"), files)
	t.Cleanup(func() { _ = f.leader.(raft.WithClose).Close() })
	f.header = raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("leader"), Addr: []byte(f.leader.LocalAddr())}
	f.open(t)
	t.Cleanup(func() { _ = f.close() })
	return f
}

func (f *follower) open(t *testing.T) {
	t.Helper()
	f.voter = &voter{failed: make(chan error, 10)}
	_, f.cancel = context.WithCancel(t.Context())
	s := f.setup
	s.Network = listen(t)
	s.StepDown = NewStepDown()
	s.Fail = func(err error) { f.failed <- err }
	s.CannotApply = s.Fail
	var err error
	f.dir, err = OpenDirectory(s.path, s.claim)
	require.NoError(t, err)
	f.Raft, err = Open(f.dir, s.Config)
	require.NoError(t, err)
}

// append sends entries of some terms that follow a position, and tells whether that is a success.
func (f *follower) append(t *testing.T, term ids.Term, previous position, terms ...ids.Term) bool {
	t.Helper()
	return f.commit(t, term, 0, previous, terms...)
}

func (f *follower) commit(t *testing.T, term ids.Term, index ids.Index, previous position, terms ...ids.Term) bool {
	t.Helper()
	request := &raft.AppendEntriesRequest{
		RPCHeader: f.header, Term: uint64(term), PrevLogEntry: uint64(previous.index), PrevLogTerm: uint64(previous.term),
		LeaderCommitIndex: uint64(index),
	}
	for i, term := range terms {
		at := uint64(previous.index) + uint64(i) + 1
		request.Entries = append(request.Entries, &raft.Log{Index: at, Term: uint64(term), Type: raft.LogNoop})
	}
	response := new(raft.AppendEntriesResponse)
	require.NoError(t, f.leader.AppendEntries(f.id, f.Transport.LocalAddr(), request, response))
	return response.Success
}

func (f *follower) install(meta *raft.SnapshotMeta, state io.Reader) (bool, error) {
	response := new(raft.InstallSnapshotResponse)
	err := f.leader.InstallSnapshot(f.id, f.Transport.LocalAddr(), &raft.InstallSnapshotRequest{
		RPCHeader: f.header, SnapshotVersion: meta.Version, Term: meta.Term, LastLogIndex: meta.Index, LastLogTerm: meta.Term,
		Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex, Size: meta.Size,
	}, response, state)
	return response.Success, err
}

// log answers the terms of what is in the log.
func (f *follower) log(t *testing.T) (terms []ids.Term) {
	t.Helper()
	first, err := f.files.log.FirstIndex()
	require.NoError(t, err)
	last, err := f.files.log.LastIndex()
	require.NoError(t, err)
	for index := first; index <= last && last > 0; index++ {
		var entry raft.Log
		require.NoError(t, f.files.log.GetLog(index, &entry))
		terms = append(terms, ids.Term(entry.Term))
	}
	return terms
}

// snapshotOf is the newest one of a voter that has made some names.
func snapshotOf(t *testing.T, v *voter, names ...string) (meta *raft.SnapshotMeta, end position, state []byte) {
	t.Helper()
	for _, name := range names {
		v.mustCreate(t, name)
	}
	v.snapshot(t)
	kept, err := v.files.snapshots.List()
	require.NoError(t, err)
	meta, reader, err := v.files.snapshots.Open(kept[0].ID)
	require.NoError(t, err)
	state, err = io.ReadAll(reader)
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	return meta, position{ids.Index(meta.Index), ids.Term(meta.Term)}, state
}

func (p position) plus(n int, term ids.Term) position {
	return position{ids.Index(int(p.index) + n), term}
}

const oldTerm = 1 // before that of any voter of these tests

func manyOf(term ids.Term, n ids.Index) []ids.Term { return slices.Repeat([]ids.Term{term}, int(n)) }

// TestAFollowerGoesOnBehindAnInstalledSnapshot which has an entry behind it that was never committed: a
// new leader has another one there.
func TestAFollowerGoesOnBehindAnInstalledSnapshot(t *testing.T) {
	f := newFollower(t)
	meta, end, state := snapshotOf(t, newSetup(t).start(t), "a", "b")
	installed, err := f.install(meta, bytes.NewReader(state))
	require.NoError(t, err)
	require.True(t, installed)
	for _, restarted := range []bool{false, true} {
		if restarted {
			require.NoError(t, f.dir.SetJoined())
			require.NoError(t, f.close())
			f.open(t)
		}
		old, newer := end.term, end.term+1
		if !restarted {
			require.True(t, f.append(t, old, end, old), "an entry that is not committed")
			require.False(t, f.append(t, newer, end.plus(1, newer), newer), "it has another one there")
			require.False(t, f.append(t, newer, end.plus(0, old+5), newer), "a snapshot of another history")
			require.True(t, f.commit(t, newer, end.index+1, end.plus(-1, old), old), "what the snapshot has")
			require.Equal(t, []ids.Term{old}, f.log(t))
			require.LessOrEqual(t, ids.Index(f.AppliedIndex()), end.index)
		}
		require.True(t, f.append(t, newer, end, newer, newer))
		require.True(t, f.commit(t, newer, end.index+2, end.plus(-2, old), old, old, newer, newer, newer))
		require.Equal(t, manyOf(newer, 3), f.log(t))
		require.Eventually(t, func() bool { return ids.Index(f.AppliedIndex()) == end.index+2 }, testWait, time.Millisecond)
	}
	require.Empty(t, f.failed)
}

// TestALogThatASnapshotWasToReplaceIsGone has a node end when it had received a snapshot, and before it
// had dropped a log that has another entry where the snapshot ends.
func TestALogThatASnapshotWasToReplaceIsGone(t *testing.T) {
	f := newFollower(t)
	meta, end, state := snapshotOf(t, newSetup(t).start(t), "a", "b")
	require.True(t, f.append(t, oldTerm, position{}, manyOf(oldTerm, end.index+2)...))
	require.NoError(t, f.dir.SetJoined())
	require.NoError(t, f.close())
	store, err := openSnapshots(f.setup.path, quietLogger())
	require.NoError(t, err)
	sink, err := store.Create(meta.Version, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, f.leader)
	require.NoError(t, err)
	_, err = sink.Write(state)
	require.NoError(t, err)
	require.NoError(t, sink.Close())
	f.open(t)
	require.Empty(t, f.log(t))
	require.True(t, f.append(t, end.term+1, end, end.term+1))
	require.Empty(t, f.failed)
}

// TestAMessageWaitsForTheSnapshotBeforeIt which it does not reach back to any more.
func TestAMessageWaitsForTheSnapshotBeforeIt(t *testing.T) {
	f, leader := newFollower(t), newSetup(t).start(t)
	meta, before, state := snapshotOf(t, leader, "a")
	installed, err := f.install(meta, bytes.NewReader(state))
	require.NoError(t, err)
	require.True(t, installed)
	meta, end, state := snapshotOf(t, leader, "b", "c", "d")
	reader, writer := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := f.install(meta, reader)
		done <- err
	}()
	_, err = writer.Write(state[:10])
	require.NoError(t, err)
	appended := make(chan bool)
	go func() { appended <- f.append(t, end.term, before, end.term, end.term) }()
	require.Never(t, func() bool { return len(appended) > 0 }, 50*time.Millisecond, time.Millisecond)
	_, err = writer.Write(state[10:])
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.NoError(t, <-done)
	require.True(t, <-appended, "all of it is in the snapshot")
	require.Empty(t, f.log(t))
	require.True(t, f.append(t, end.term, end, end.term))
	require.Empty(t, f.failed)
}

// TestASnapshotThatCannotBeRestoredCoversNothing: the state is as it was, and so is the log.
func TestASnapshotThatCannotBeRestoredCoversNothing(t *testing.T) {
	f := newFollower(t)
	meta, end, _ := snapshotOf(t, newSetup(t).start(t), "a", "b")
	require.True(t, f.append(t, oldTerm, position{}, manyOf(oldTerm, end.index+2)...))
	meta.Size = 4
	installed, err := f.install(meta, bytes.NewReader(make([]byte, 4)))
	require.Error(t, err)
	require.False(t, installed)
	require.False(t, f.commit(t, end.term+1, end.index+1, end, end.term+1, end.term+1))
	require.Zero(t, f.AppliedIndex())
}

// TestASnapshotThatTheLogGoesOnBehindIsNotInstalled, as entries behind it may count already.
func TestASnapshotThatTheLogGoesOnBehindIsNotInstalled(t *testing.T) {
	f := newFollower(t)
	meta, end, state := snapshotOf(t, newSetup(t).start(t), "a", "b")
	terms := manyOf(end.term, end.index+2)
	require.True(t, f.append(t, end.term, position{}, terms...))
	installed, err := f.install(meta, bytes.NewReader(state))
	require.NoError(t, err)
	require.True(t, installed)
	require.Equal(t, terms, f.log(t))
	require.Empty(t, f.failed)
}

// TestNothingIsCommittedThatWasNotCompared: a leader knows more to be committed than it says in a
// message, and this node has other entries there.
func TestNothingIsCommittedThatWasNotCompared(t *testing.T) {
	f := newFollower(t)
	require.True(t, f.append(t, oldTerm, position{}, manyOf(oldTerm, 5)...))
	require.True(t, f.commit(t, 9, 5, position{3, oldTerm}))
	require.Never(t, func() bool { return f.AppliedIndex() > 3 }, 50*time.Millisecond, time.Millisecond)
	require.True(t, f.commit(t, 9, 5, position{3, oldTerm}, 9, 9))
	require.Eventually(t, func() bool { return f.AppliedIndex() == 5 }, testWait, time.Millisecond)
	require.Equal(t, []ids.Term{oldTerm, oldTerm, oldTerm, 9, 9}, f.log(t))
}

// TestASnapshotThatComesLateIsNotInstalled once more, or after a newer one, since entries behind it may
// count already.
func TestASnapshotThatComesLateIsNotInstalled(t *testing.T) {
	f, leader := newFollower(t), newSetup(t).start(t)
	older, _, olderState := snapshotOf(t, leader, "a")
	meta, end, state := snapshotOf(t, leader, "b")
	for _, again := range []bool{false, true} {
		installed, err := f.install(meta, bytes.NewReader(state))
		require.NoError(t, err)
		require.True(t, installed)
		if !again {
			require.True(t, f.append(t, end.term, end, end.term, end.term))
		}
	}
	older.Term++ // of a leader that this node has not heard of
	installed, err := f.install(older, bytes.NewReader(olderState))
	require.NoError(t, err)
	require.True(t, installed)
	require.Equal(t, manyOf(end.term, 2), f.log(t))
	require.Equal(t, end.index, ids.Index(f.AppliedIndex()))
	require.Empty(t, f.failed)
}

// TestAProcessEndsThatCountsEntriesThatAreGone: of a leader that was cut off for long, with more than the
// new one's snapshot has, or as much.
func TestAProcessEndsThatCountsEntriesThatAreGone(t *testing.T) {
	meta, end, state := snapshotOf(t, newSetup(t).start(t), "a", "b")
	for _, more := range []ids.Index{0, 2} {
		f := newFollower(t)
		require.True(t, f.append(t, oldTerm, position{}, manyOf(oldTerm, end.index+more)...))
		installed := make(chan error)
		go func() {
			_, err := f.install(meta, bytes.NewReader(state))
			installed <- err
		}()
		require.ErrorIs(t, <-f.failed, errStaleLog)
		require.NoError(t, f.dir.SetJoined())
		require.NoError(t, f.close())
		require.Error(t, <-installed, "it is not said")
		f.open(t)
		require.True(t, f.append(t, end.term, end, end.term))
	}
}

// TestALogThatBeginsBehindItsOwnSnapshot as one does that was compacted with nothing left: raft counts
// what it leaves from the end.
func TestALogThatBeginsBehindItsOwnSnapshot(t *testing.T) {
	s := newSetup(t)
	v := s.start(t)
	_, end, _ := snapshotOf(t, v, "a", "b")
	require.NoError(t, v.close())
	f := newFollower(t)
	require.NoError(t, f.close())
	f.setup = s
	f.open(t)
	first, err := f.files.logs.FirstIndex()
	require.NoError(t, err)
	require.NoError(t, f.files.logs.DeleteRange(first, uint64(end.index-1)))
	require.True(t, f.append(t, end.term+5, end.plus(-2, end.term), end.term), "what the snapshot has, the log has no more, and the leader does not know to be here")
	require.NoError(t, f.files.logs.DeleteRange(uint64(end.index), uint64(end.index)))
	some, later := end.term+10, end.term+20 // it may elect itself meanwhile
	require.True(t, f.append(t, some, end, some))
	require.False(t, f.append(t, later, end.plus(1, later), later))
	require.True(t, f.append(t, later, end, later))
}

// TestWhatASnapshotHasMakesNoDifference to a follower of which the log begins in or behind it: it takes
// what it would with all of its log, and calls nothing committed that the leader has not.
func TestWhatASnapshotHasMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOfN(rapid.Uint64Range(1, 3), 1, 8).Draw(t, "leader's terms")
		slices.Sort(terms)
		leader := append([]uint64{0}, terms...) // by index
		covered := rapid.IntRange(1, len(leader)-1).Draw(t, "covered by the snapshot")
		behind := rapid.IntRange(0, covered).Draw(t, "compacted")
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
		skipped := skipCovered(commitCompared(message), position{ids.Index(covered), ids.Term(leader[covered])})
		if previous > covered || previous < covered && end == previous {
			require.Equal(t, commitCompared(message), skipped)
			return
		}
		if previous > behind {
			skipped = commitCompared(message) // raft can compare
		}
		want, _, _ := appendTo(follower, 0, message)
		got, committed, taken := appendTo(follower, behind, skipped)
		require.True(t, taken)
		require.Equal(t, want, got)
		require.Equal(t, leader[:committed+1], got[:committed+1])
	})
}

// appendTo does what raft does with a message, if the log begins behind an index.
func appendTo(log []uint64, behind int, message *raft.AppendEntriesRequest) (after []uint64, committed uint64, taken bool) {
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

// vote asks the follower for its vote as a server at an address.
func (f *follower) vote(t *testing.T, id raft.ServerID, address raft.ServerAddress, term ids.Term) bool {
	t.Helper()
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: f.leader.EncodePeer(id, address)}
	request, response := &raft.RequestVoteRequest{RPCHeader: header, Term: uint64(term)}, new(raft.RequestVoteResponse)
	require.NoError(t, f.leader.RequestVote(f.id, f.Transport.LocalAddr(), request, response))
	return response.Granted
}

// TestAVoteIsForAServerNotForAnAddress: a server that got the address of the elected leader does not get
// the same vote in the same term, nor does a copy of the leader at another address. That holds after a
// restart of the follower too.
func TestAVoteIsForAServerNotForAnAddress(t *testing.T) {
	f := newFollower(t)
	require.True(t, f.vote(t, "b", "10.0.0.1:1", 5))
	for _, restarted := range []bool{false, true} {
		if restarted {
			require.NoError(t, f.dir.SetJoined())
			require.NoError(t, f.close())
			f.open(t)
		}
		require.False(t, f.vote(t, "c", "10.0.0.1:1", 5), "another server at that address")
		require.False(t, f.vote(t, "b", "10.0.0.2:1", 5), "a copy of the server elsewhere")
		require.True(t, f.vote(t, "b", "10.0.0.1:1", 5), "the same request again")
	}
	require.True(t, f.vote(t, "c", "10.0.0.1:1", 6))
}

// TestIdentificationIsNotLoggedAsARejectedVote asks a follower that has a leader which server it is.
func TestIdentificationIsNotLoggedAsARejectedVote(t *testing.T) {
	f := newFollower(t)
	require.NoError(t, f.close())
	var logged bytes.Buffer
	f.setup.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	f.open(t)
	require.True(t, f.append(t, oldTerm, position{}, oldTerm))
	files := &storage{logs: newParallelLog(raft.NewInmemStore()), space: newDiskReserve("", 0, quietLogger()), snapshots: new(snapshotStore)}
	asker := newTransport(&Config{Network: listen(t), Addresses: NewLearnedAddresses(), StepDown: NewStepDown(), Logger: quietLogger()}, directoryOf("asker"), files).(transport)
	defer func() { _ = asker.Close() }()
	require.NoError(t, asker.identify(f.id, f.Transport.LocalAddr()))
	require.ErrorContains(t, asker.identify("another", f.Transport.LocalAddr()), "answers")
	require.NoError(t, f.close()) // nothing more is logged
	require.NotContains(t, logged.String(), "rejecting pre-vote")
}
