package consensus

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

// damagedLog answers one entry otherwise than it was written.
type damagedLog struct {
	raft.LogStore

	at     uint64
	damage func(*raft.Log) error
}

func (l *damagedLog) GetLog(index uint64, to *raft.Log) error {
	err := l.LogStore.GetLog(index, to)
	if err == nil && index == l.at {
		err = l.damage(to)
	}
	return err
}

// TestEachEntryIsChecked as a node starts.
func TestEachEntryIsChecked(t *testing.T) {
	log := raft.NewInmemStore()
	sizes, err := checkEntries(log, 3)
	require.NoError(t, err, "it is empty")
	require.Zero(t, sizes)
	for index := uint64(4); index <= 8; index++ {
		require.NoError(t, log.StoreLog(&raft.Log{Index: index, Term: 1, Type: raft.LogNoop}))
	}
	for snapshot := range uint64(9) {
		_, err := checkEntries(log, 8-ids.Index(snapshot))
		require.Equal(t, snapshot > 5, err != nil, "%d: %v", 8-snapshot, err)
	}
	for at := uint64(4); at <= 8; at++ {
		_, err := checkEntries(&damagedLog{log, at, func(*raft.Log) error { return errors.New("gone") }}, 3)
		require.ErrorContains(t, err, "gone")
		_, err = checkEntries(&damagedLog{log, at, func(entry *raft.Log) error { entry.Index++; return nil }}, 3)
		require.ErrorContains(t, err, "says that it is")
	}
}

// TestTheFirstEntryMayBeAnEarlyOne only if there is no other.
func TestTheFirstEntryMayBeAnEarlyOne(t *testing.T) {
	log := raft.NewInmemStore()
	early := &parallelLog{LogStore: log}
	first := func() uint64 {
		index, err := early.FirstIndex()
		require.NoError(t, err)
		return index
	}
	require.Zero(t, first())
	early.unwritten = []*raft.Log{{Index: 5}}
	require.EqualValues(t, 5, first())
	require.NoError(t, log.StoreLogs([]*raft.Log{{Index: 3}, {Index: 4}}))
	require.EqualValues(t, 3, first())
}
