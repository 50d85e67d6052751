package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/cluster/clusterpb"
)

// Metrics has the metrics of a server process, which may have a mount.
type Metrics struct {
	*MountMetrics
	requests   *prometheus.HistogramVec
	commits    prometheus.Histogram
	writes     prometheus.Histogram
	malformed  prometheus.Counter
	crowded    prometheus.Counter
	forwarded  prometheus.Counter
	refusals   *prometheus.CounterVec
	handshakes prometheus.Counter
	insecure   prometheus.Gauge
	backups    *prometheus.CounterVec
	lastBackup prometheus.Gauge
}

// NewMetrics makes a registry that also has the metrics of the Go runtime and the process.
func NewMetrics() *Metrics {
	m := &Metrics{
		MountMetrics: NewMountMetrics(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lockfs_requests_seconds", Help: "Commands and queries answered by this server, by operation and result code or outcome.",
			Buckets: latencyBuckets,
		}, []string{"operation", "result"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lockfs_commit_seconds", Help: "Time from the proposal of a change by this leader until a quorum has stored it and it is applied here.",
			Buckets: latencyBuckets,
		}),
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lockfs_disk_write_seconds", Help: "Writes of log and votes to this server's disk (fsync).",
			Buckets: latencyBuckets,
		}),
		malformed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lockfs_malformed_requests_total", Help: "Requests from the network that could not be parsed.",
		}),
		crowded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lockfs_refused_connections_total", Help: "Connections from the network refused because there were too many.",
		}),
		forwarded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lockfs_forwarded_calls_total", Help: "Calls forwarded by this server to the leader, for hosts that cannot reach the leader.",
		}),
		backups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockfs_backups_total", Help: "Scheduled backups of this server (--backup-dir), by result: ok or failed.",
		}, []string{"result"}),
		lastBackup: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lockfs_last_backup_timestamp_seconds", Help: "Time of the newest scheduled backup, in seconds since 1970; 0: none.",
		}),
		handshakes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lockfs_failed_handshakes_total", Help: "TLS handshakes that failed.",
		}),
		insecure: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lockfs_insecure", Help: "1 if this server trusts every caller (--insecure).",
		}),
	}
	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lockfs_refused_calls_total", Help: "Calls refused for lack of permission, by role of the caller and method.",
	}, []string{"role", "method"})
	m.Registry.MustRegister(m.refusals, m.requests, m.commits, m.writes, m.malformed, m.crowded, m.forwarded, m.handshakes, m.insecure,
		m.backups, m.lastBackup)
	return m
}

// refused counts a call without permission.
func (m *Metrics) refused(role, method string) { m.refusals.WithLabelValues(role, method).Inc() }

// observeRequest counts a request done by this node as the leader.
func (m *Metrics) observeRequest(req *clusterpb.ExecuteRequest, reply *clusterpb.ExecuteReply, took time.Duration) {
	result := reply.GetResult().GetCode().String()
	if reply.GetOutcome() != clusterpb.Outcome_DONE {
		result = reply.GetOutcome().String()
	}
	m.requests.WithLabelValues(operationName(req), result).Observe(took.Seconds())
}

func operationName(req *clusterpb.ExecuteRequest) string {
	var oneof protoreflect.Message
	if query := req.GetQuery(); query != nil {
		oneof = query.ProtoReflect()
	} else {
		oneof = req.GetCommand().GetOp().ProtoReflect()
	}
	field := oneof.WhichOneof(oneof.Descriptor().Oneofs().Get(0))
	if field == nil {
		return "unknown"
	}
	return string(field.Name())
}
