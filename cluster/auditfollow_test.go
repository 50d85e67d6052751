package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestTheWholeTrailHasNoOldEventsBetweenGaps, of which only those of administrators are kept still. A
// server without a file begins where all are kept.
func TestTheWholeTrailHasNoOldEventsBetweenGaps(t *testing.T) {
	ns, index := namespace.New(), uint64(0)
	apply := func(op *storepb.Op) {
		index++
		ns.Apply(ids.Index(index), &storepb.Command{Time: int64(index) * int64(time.Second), Op: op})
	}
	rule := func(pattern string) {
		apply(&storepb.Op{Op: &storepb.Op_SetRule{SetRule: &storepb.SetRule{Rule: &storepb.Rule{Pattern: pattern, StaleAfter: int64(time.Hour)}}}})
	}
	churn := func(until uint64) {
		for ns.LastEvent() < until {
			apply(&storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
				Parent: namespace.RootIno, Name: []byte("lock"), Mode: 0o100644, Exclusive: true, Says: storepb.NameSays_SAYS_LOCK,
			}}})
			apply(&storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte("lock")}}})
		}
	}
	numbers := func(events []*storepb.Event) (numbers []uint64) {
		for _, e := range events {
			numbers = append(numbers, e.GetNumber())
		}
		return numbers
	}
	rule("*.x")
	churn(2)
	rule("*.y")
	require.Equal(t, []uint64{1, 2, 3}, numbers(unbrokenEvents(ns, 0, 3)))
	churn(10_010)
	require.Len(t, ns.EventsOf(namespace.AdministrationEvents, 0, 10), 2)
	whole := ns.EventsWholeFrom()
	require.Greater(t, whole, uint64(4))
	require.Equal(t, []uint64{whole, whole + 1}, numbers(unbrokenEvents(ns, 0, 2)))
	require.Equal(t, []uint64{whole, whole + 1}, numbers(unbrokenEvents(ns, 2, 2)))
	require.Equal(t, []uint64{whole + 1, whole + 2}, numbers(unbrokenEvents(ns, whole, 2)))
	require.Empty(t, unbrokenEvents(ns, ns.LastEvent(), 2))
}
