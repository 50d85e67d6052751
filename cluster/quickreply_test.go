package cluster

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-metrics"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// quickAnswer holds a leader up at the moment between sending an entry and counting anew who has it,
// until raft has passed over a server's answer to that entry. Raft tells its figures there.
type quickAnswer struct {
	metrics.BlackholeSink
	server string

	mu       sync.Mutex
	entries  float32 // that the server has
	armed    bool
	awaited  bool          // its answer to the next entry
	answered bool          // to that; what raft does with it is over when it tells of another answer
	passed   chan struct{} // closed
}

// AddSampleWithLabels is part of metrics.MetricSink.
func (q *quickAnswer) AddSampleWithLabels(key []string, _ float32, _ []metrics.Label) {
	if strings.Join(key, ".") != "raft.leader.dispatchLog" {
		return
	}
	q.mu.Lock()
	hold := q.armed
	q.armed = false
	q.mu.Unlock()
	if hold {
		<-q.passed
	}
}

// IncrCounterWithLabels is part of metrics.MetricSink.
func (q *quickAnswer) IncrCounterWithLabels(key []string, entries float32, labels []metrics.Label) {
	if strings.Join(key, ".") != "raft.replication.appendEntries.logs" || labels[0].Value != q.server {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.answered:
		q.answered = false
		close(q.passed)
	case q.awaited && entries > 0:
		q.awaited, q.answered = false, true
	}
	q.entries += entries
}

// armWith is to be done once the server has as many entries: the next answer with some is to the next
// entry.
func (q *quickAnswer) armWith(entries uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = q.entries >= float32(entries)
	q.awaited = q.armed
	return q.armed
}

func tellFiguresTo(t testing.TB, sink metrics.MetricSink) {
	t.Helper()
	_, err := metrics.NewGlobal(&metrics.Config{FilterDefault: true, TimerGranularity: time.Millisecond}, sink)
	require.NoError(t, err)
}

// TestALearnerIsPromotedThoughItAnswersSooner has one of three voters be gone, so that the newcomer's
// vote is committed only if raft counts the newcomer itself. Nobody does anything else, of which it would
// hear later. The figures are all nodes': no other test runs meanwhile.
func TestALearnerIsPromotedThoughItAnswersSooner(t *testing.T) {
	first := startNode(t, testConfig(t, "n0"))
	cfg := testConfig(t, "n1", first.cfg.Address)
	hang := new(atomic.Pointer[chan struct{}])
	cfg.entries = func(log raft.LogStore) raft.LogStore { return hangingLog{log, hang} }
	startNode(t, cfg)
	require.NoError(t, startNode(t, testConfig(t, "n2", first.cfg.Address)).Close())

	newcomer, err := Open(testConfig(t, "n3", first.cfg.Address))
	require.NoError(t, err)
	defer func() { _ = newcomer.Close() }()
	require.NoError(t, newcomer.dir.SetCluster(first.dir.ClusterID()))
	sink := &quickAnswer{server: newcomer.dir.ID, passed: make(chan struct{})}
	tellFiguresTo(t, sink)
	defer tellFiguresTo(t, new(metrics.BlackholeSink))
	require.True(t, first.proposer.exclusive.Lock(t.Context()))
	addNewcomer(t, first, newcomer.members.own())
	require.Eventually(t, func() bool { return sink.armWith(first.raft.LastIndex()) }, testWait, time.Millisecond)
	hang.Store(&sink.passed) // the other voter answers later
	first.proposer.exclusive.Unlock()

	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	select {
	case <-sink.passed:
	case <-ctx.Done():
		t.Fatal("the newcomer does not answer")
	}
	require.NoError(t, newcomer.WaitReady(ctx))
	require.Contains(t, first.raft.VoterIDs(), newcomer.dir.ID)
}
