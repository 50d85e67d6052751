package cluster

import (
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// metricsOf are the values that a node serves, by name and labels as in "lockfs_locks{pid,held}".
func metricsOf(t testing.TB, m *Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			values[name] = valueOf(family.GetType(), metric)
		}
	}
	return values
}

// valueOf is the count of a histogram.
func valueOf(kind dto.MetricType, metric *dto.Metric) float64 {
	switch kind {
	case dto.MetricType_COUNTER:
		return metric.GetCounter().GetValue()
	case dto.MetricType_HISTOGRAM:
		return float64(metric.GetHistogram().GetSampleCount())
	}
	return metric.GetGauge().GetValue()
}

func TestMetricsOfALeader(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	client := openTestClient(t, leader, "")
	create(t, client, "some.lock")
	mutate(t, client, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: 1, Name: []byte("dir.lock"), Mode: 0o040755, Exclusive: true,
	}}})
	values := metricsOf(t, leader.cfg.Metrics)
	require.EqualValues(t, 3, values["lockfs_raft_voters"])
	require.EqualValues(t, 1, values["lockfs_raft_is_leader"])
	require.EqualValues(t, 1, values["lockfs_sessions"])
	require.EqualValues(t, 1, values["lockfs_hosts{mounted}"])
	require.EqualValues(t, 1, values["lockfs_lock_directories"])
	require.Positive(t, values["lockfs_commit_seconds"])
	require.Positive(t, values["lockfs_disk_write_seconds"])
	require.Positive(t, values["lockfs_raft_log_bytes"])
	require.Positive(t, values["lockfs_data_disk_free_bytes"])
	require.NotContains(t, values, "lockfs_snapshot_bytes", "there is none yet")
	takeSnapshot(t, leader)
	values = metricsOf(t, leader.cfg.Metrics)
	require.Positive(t, values["lockfs_snapshot_bytes"])
	require.InDelta(t, time.Now().Unix(), values["lockfs_snapshot_timestamp_seconds"], 3600)
	require.Eventually(t, func() bool {
		values = metricsOf(t, leader.cfg.Metrics)
		return values["lockfs_leader_voters_reached"] == 3
	}, testWait, 10*time.Millisecond, "voters reached: %v", values["lockfs_leader_voters_reached"])
	require.Less(t, values["lockfs_leader_unconfirmed_seconds"], testWait.Seconds())
	require.Contains(t, values, "lockfs_voter_clock_offset_seconds{n1}")
	require.Contains(t, values, "lockfs_voter_silent_seconds{n2}")
	for _, node := range nodes {
		if node != leader {
			require.NotContains(t, metricsOf(t, node.cfg.Metrics), "lockfs_leader_voters_reached")
		}
	}
}

func TestALeaderTellsOfVotersThatAreSilent(t *testing.T) {
	t.Parallel()
	others := []string{"a", "b"}
	var h lastContact
	asked := time.Now()
	h.note(others[0], 7, asked)
	h.note(others[1], 6, asked)
	h.note(others[0], 6, asked.Add(time.Hour))
	silences := h.sinceContact(7, asked.Add(time.Minute), others)
	require.Equal(t, map[string]time.Duration{others[0]: time.Minute, others[1]: time.Minute}, silences)
	h.note(others[0], 7, asked.Add(50*time.Second))
	silences = h.sinceContact(7, asked.Add(time.Minute), others)
	require.Equal(t, 10*time.Second, silences[others[0]])
	require.Equal(t, 10*time.Second, sinceQuorumContact(silences), "two of three are a majority")
	require.Empty(t, h.sinceContact(8, asked, others))
	require.Zero(t, sinceQuorumContact(nil), "who is alone is a majority")
	require.Equal(t, 3*time.Second, sinceQuorumContact(map[string]time.Duration{"a": time.Second, "b": 3 * time.Second, "c": time.Hour, "d": time.Hour}))
}
