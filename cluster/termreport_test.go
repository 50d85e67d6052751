package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// reporter is a node whose words are looked at.
type reporter struct {
	*termReports
	term  ids.Term
	clock time.Duration
}

func newReporter(term ids.Term) *reporter {
	s := &reporter{term: term, clock: time.Hour}
	s.termReports = newTermReports(func() ids.Term { return s.term }, func() time.Duration { return s.clock })
	return s
}

func (s *reporter) requireSilent(t *testing.T, want time.Duration) {
	t.Helper()
	term, silent := s.report()
	require.Equal(t, s.term, term)
	require.Equal(t, want, silent)
}

func TestReportsOfTheSameTermDoNotCount(t *testing.T) {
	s := newReporter(3)
	s.clock += time.Minute
	s.requireSilent(t, time.Minute) // what it said before it was started
	s.clock += time.Second
	s.requireSilent(t, time.Minute+time.Second)
	s.term = 4
	s.clock += 2 * time.Second
	s.requireSilent(t, 2*time.Second)
	s.clock += time.Second
	s.requireSilent(t, 3*time.Second)
	s.term = 6
	s.requireSilent(t, 0)
}

// TestStoringEntriesReportsTheTerm has a voter store what a leader sends that asks it nothing.
func TestStoringEntriesReportsTheTerm(t *testing.T) {
	s := newReporter(3)
	s.onStoreEntries()
	s.clock += time.Second
	s.onStoreEntries()
	s.clock += time.Second
	s.term = 4
	s.requireSilent(t, time.Second)
	s.clock += time.Second
	s.onStoreEntries()
	s.requireSilent(t, 2*time.Second)
	s.term = 5
	s.onStoreEntries()
	s.clock += time.Second
	s.requireSilent(t, time.Second)
}

func TestLeasesAreOverAfterTheLastReport(t *testing.T) {
	s := newReporter(3)
	elected := s.clock + lease.Duration/2
	s.clock = elected
	silent := s.clock - 2*lease.Duration
	require.Equal(t, elected+lease.Duration, s.leaseExpiry(elected, silent), "it was started just now")
	s.clock += lease.Duration
	require.Equal(t, silent+lease.Duration, s.leaseExpiry(elected, silent))
	require.Equal(t, elected+lease.Duration, s.leaseExpiry(elected, elected+time.Second), "whoever hears of it late does not matter")
	s.onConfigChange()
	require.Equal(t, elected+lease.Duration, s.leaseExpiry(elected, silent))
}

// TestACommandIsAReportOfAQuorum by the time that it is committed, of the leader and of followers that
// nobody asks.
func TestACommandIsAReportOfAQuorum(t *testing.T) {
	nodes := leasingNodes(t, 3)
	for range 50 {
		before := monotonic()
		_, err := nodes[0].store.Propose(t.Context(), &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		require.NoError(t, err)
		said := 0
		for _, node := range nodes {
			node.termReports.mu.Lock()
			if node.termReports.last >= before {
				said++
			}
			node.termReports.mu.Unlock()
		}
		require.GreaterOrEqual(t, said, 2)
	}
}
