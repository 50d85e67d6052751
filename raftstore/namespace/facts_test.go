package namespace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// TestNumbersOfFacts: what a lock is said to be in a command is what it is taken for.
func TestNumbersOfFacts(t *testing.T) {
	for number, name := range storepb.Format_name {
		if number != 0 {
			require.Equal(t, strings.ToLower(name), lockfact.Format(number).String())
		}
	}
	require.Len(t, storepb.Format_name, len(lockfact.Formats()), "with none set, and without data")
	require.NotContains(t, storepb.Format_name, int32(lockfact.Data))
	for number, name := range storepb.Guard_name {
		if number != 0 {
			require.Equal(t, strings.ToLower(name), lockfact.Guard(number).String())
		}
	}
	require.Empty(t, lockfact.Guard(len(storepb.Guard_name)).String())
	for number, name := range storepb.OnStale_name {
		if number != 0 {
			require.Equal(t, strings.ToLower(name), lockfact.OnStale(number).String())
		}
	}
	require.Empty(t, lockfact.OnStale(len(storepb.OnStale_name)).String())
}

// TestFactsOfAnUnknownKindAreNotKept: a lock that nobody can judge is no lock, and no snapshot with it could be read again.
func TestFactsOfAnUnknownKindAreNotKept(t *testing.T) {
	for _, facts := range []*storepb.Facts{
		{Format: storepb.Format(lockfact.Data)}, {Format: -1}, {Format: 1<<16 + 1}, {Guard: 99}, {OnStale: 99},
	} {
		tr := newDriver(t)
		tr.file(RootIno, "lock")
		op := tr.fillOp(here, RootIno, "lock", facts)
		tr.do(here, opOf(op)).is(storepb.Code_INVALID)
		require.Empty(t, tr.content(op.GetIno()))
	}
}
