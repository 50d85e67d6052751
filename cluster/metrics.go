package cluster

import (
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore/namespace"
)

// latencyBuckets reach from a read in this process to an operation that timed out.
var latencyBuckets = []float64{
	25e-6, 50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25.6e-3, 51.2e-3, .1, .25, 1, 4, 16,
}

// Metrics is what this process counts.
type Metrics struct {
	Registry   *prometheus.Registry
	requests   *prometheus.HistogramVec
	mounted    *prometheus.HistogramVec
	mounts     prometheus.Gauge
	malformed  prometheus.Counter
	crowded    prometheus.Counter
	refusals   *prometheus.CounterVec
	handshakes prometheus.Counter
	insecure   prometheus.Gauge
}

// NewMetrics makes a registry with the metrics of the Go runtime and the process in it.
func NewMetrics() *Metrics {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: latencyBuckets},
			[]string{"operation", "result"})
	}
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: histogram("lockfs_requests_seconds",
			"Commands and queries that this node answered, by operation and result code or outcome."),
		mounted: histogram("lockfs_mount_operations_seconds",
			"Operations of the kernel on this process's mount, by operation and errno name (OK for none)."),
		mounts: prometheus.NewGauge(prometheus.GaugeOpts{Name: "lockfs_mounts", Help: "Mounts of this process."}),
		malformed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lockfs_malformed_requests_total", Help: "Requests from the network that nobody should have sent.",
		}),
		crowded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lockfs_refused_connections_total", Help: "Connections from the network that there were too many others for.",
		}),
		handshakes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lockfs_failed_handshakes_total", Help: "Connections from the network of somebody who showed no right to one.",
		}),
		insecure: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lockfs_insecure", Help: "1 if whoever reaches the port of this node is trusted (--insecure).",
		}),
	}
	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lockfs_refused_calls_total", Help: "Calls that their callers had no right to, by what the callers are and what they asked for.",
	}, []string{"role", "method"})
	m.Registry.MustRegister(m.refusals, m.requests, m.mounted, m.mounts, m.malformed, m.crowded, m.handshakes, m.insecure,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// refused counts a call that its caller had no right to.
func (m *Metrics) refused(role, method string) { m.refusals.WithLabelValues(role, method).Inc() }

// ObserveMount counts an operation of the kernel.
func (m *Metrics) ObserveMount(op string, errno syscall.Errno, took time.Duration) {
	result := "OK"
	if errno != 0 {
		if result = unix.ErrnoName(errno); result == "" {
			result = strconv.Itoa(int(errno))
		}
	}
	m.mounted.WithLabelValues(op, result).Observe(took.Seconds())
}

// observeRequest counts what this node did as the leader.
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

// SetMounts says how many mounts this process has.
func (m *Metrics) SetMounts(number int) { m.mounts.Set(float64(number)) }

var _ prometheus.Collector = (*nodeCollector)(nil)

// nodeCollector reads the gauges of a node when it is asked for them.
type nodeCollector struct {
	raft   *consensus.Raft
	gauges []nodeGauge
	events *prometheus.Desc
}

type nodeGauge struct {
	desc *prometheus.Desc
	read func(*consensus.Raft) float64
}

func newNodeCollector(r *consensus.Raft) *nodeCollector {
	gauge := func(name, help string, read func(*consensus.Raft) float64) nodeGauge {
		return nodeGauge{prometheus.NewDesc("lockfs_"+name, help, nil, nil), read}
	}
	state := func(read func(*namespace.Namespace) float64) func(*consensus.Raft) float64 {
		return func(r *consensus.Raft) (value float64) {
			r.FSM.View(func(ns *namespace.Namespace) { value = read(ns) })
			return value
		}
	}
	events := prometheus.NewDesc("lockfs_events_total",
		"Events of the audit trail that ever happened in the whole cluster, as far as this node knows.", []string{"event"}, nil)
	return &nodeCollector{raft: r, events: events, gauges: []nodeGauge{
		gauge("raft_term", "Raft's current term.", func(r *consensus.Raft) float64 { return float64(r.CurrentTerm()) }),
		gauge("raft_commit_index", "Index up to which the log is known to be committed.",
			func(r *consensus.Raft) float64 { return float64(r.CommitIndex()) }),
		gauge("raft_applied_index", "Index up to which the log has been applied.",
			func(r *consensus.Raft) float64 { return float64(r.AppliedIndex()) }),
		gauge("raft_last_index", "Index of the last entry in the log.", func(r *consensus.Raft) float64 { return float64(r.LastIndex()) }),
		gauge("raft_voters", "Voters in the configuration.", func(r *consensus.Raft) float64 { return float64(len(r.VoterIDs())) }),
		gauge("raft_is_leader", "1 while this node leads.", func(r *consensus.Raft) float64 { return oneIf(r.State() == raft.Leader) }),
		gauge("raft_leader_known", "1 while a leader is known.", func(r *consensus.Raft) float64 {
			_, id := r.LeaderWithID()
			return oneIf(id != "")
		}),
		gauge("inodes", "Files, directories and links.", state(func(ns *namespace.Namespace) float64 { return float64(ns.Inodes()) })),
		gauge("inodes_limit", "How many inodes there may be (--max-inodes).",
			state(func(ns *namespace.Namespace) float64 { return float64(ns.Usage().GetMaxInodes()) })),
		gauge("bytes", "Bytes used by files, directories and links, as they count for the limit.",
			state(func(ns *namespace.Namespace) float64 { return float64(ns.Usage().GetBytes()) })),
		gauge("bytes_limit", "How many bytes may be used (--max-bytes).",
			state(func(ns *namespace.Namespace) float64 { return float64(ns.Usage().GetMaxBytes()) })),
		gauge("sessions", "Mounts in the whole cluster.", state(func(ns *namespace.Namespace) float64 { return float64(ns.Sessions()) })),
	}}
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// Describe is part of prometheus.Collector.
func (c *nodeCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, gauge := range c.gauges {
		descs <- gauge.desc
	}
	descs <- c.events
}

// Collect is part of prometheus.Collector.
func (c *nodeCollector) Collect(metrics chan<- prometheus.Metric) {
	for _, gauge := range c.gauges {
		metrics <- prometheus.MustNewConstMetric(gauge.desc, prometheus.GaugeValue, gauge.read(c.raft))
	}
	counts := make(map[string]uint64)
	c.raft.FSM.View(func(ns *namespace.Namespace) {
		ns.EventCounts(func(event string, count uint64) { counts[event] = count })
	})
	for event, count := range counts {
		metrics <- prometheus.MustNewConstMetric(c.events, prometheus.CounterValue, float64(count), event)
	}
}
