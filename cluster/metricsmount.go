package cluster

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/storepb"
)

// MountMetrics has the metrics of a process that may have a mount.
type MountMetrics struct {
	Registry   *prometheus.Registry
	operations *prometheus.HistogramVec
	build      *prometheus.GaugeVec
	session    atomic.Pointer[MountSession]

	mu      sync.Mutex
	budgets []*budget.Pool
}

// MountSession is the session of a mount.
type MountSession interface {
	// Status describes the mount.
	Status() *storepb.MountStatus
	// Remaining is how long the session lasts without another confirmation.
	Remaining() time.Duration
}

// NewMountMetrics makes a registry that also has the metrics of the Go runtime and the process.
func NewMountMetrics() *MountMetrics {
	m := &MountMetrics{
		Registry: prometheus.NewRegistry(),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lockfs_mount_operations_seconds", Help: "Operations of the kernel on the mount of this process, by operation and errno name (OK for none).",
			Buckets: latencyBuckets,
		}, []string{"operation", "result"}),
		build: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lockfs_build_info", Help: "1, with the versions of lockfs and Go.",
		}, []string{"version", "go_version"}),
	}
	m.Registry.MustRegister(m.operations, m.build, mountCollector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// SetVersion sets the version of lockfs.
func (m *MountMetrics) SetVersion(version string) {
	m.build.Reset()
	m.build.WithLabelValues(version, runtime.Version()).Set(1)
}

// SetMount sets the session of this process's mount; nil: no mount.
func (m *MountMetrics) SetMount(session MountSession) {
	if session == nil {
		m.session.Store(nil)
		return
	}
	m.session.Store(&session)
}

// AddBudgets adds budgets that this process counts for users.
func (m *MountMetrics) AddBudgets(pools ...*budget.Pool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pool := range pools {
		m.budgets = slices.DeleteFunc(m.budgets, func(other *budget.Pool) bool { return other.Budget() == pool.Budget() })
		m.budgets = append(m.budgets, pool)
	}
}

func (m *MountMetrics) allBudgets() []*budget.Pool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.budgets)
}

// ObserveMount counts an operation of the kernel.
func (m *MountMetrics) ObserveMount(op string, errno syscall.Errno, took time.Duration) {
	result := "OK"
	if errno != 0 {
		if result = unix.ErrnoName(errno); result == "" {
			result = strconv.Itoa(int(errno))
		}
	}
	m.operations.WithLabelValues(op, result).Observe(took.Seconds())
}

// mountCollector reads the session of a mount.
type mountCollector struct{ *MountMetrics }

var _ prometheus.Collector = mountCollector{}

var (
	mountsDesc    = prometheus.NewDesc("lockfs_mounts", "Mounts of this process.", nil, nil)
	remainingDesc = prometheus.NewDesc("lockfs_mount_session_remaining_seconds",
		"Remaining time of the mount's session without another keepalive; 0: not confirmed.", nil, nil)
	offsetDesc = prometheus.NewDesc("lockfs_mount_clock_offset_seconds",
		"Offset of this host's clock from cluster time, as measured by its mount; positive: ahead.", nil, nil)

	budgetUsedDesc = prometheus.NewDesc("lockfs_budget_used",
		"Use of a budget of this process by all users.", []string{"budget"}, nil)
	budgetMostDesc = prometheus.NewDesc("lockfs_budget_limit", "Limit of a budget for each user.", []string{"budget"}, nil)
	budgetUserDesc = prometheus.NewDesc("lockfs_budget_user_used",
		"Use of a budget by its largest users: a uid of this host, or another host.", []string{"budget", "uid", "host"}, nil)
	budgetExceededDesc = prometheus.NewDesc("lockfs_budget_exceeded_total",
		"Requests beyond a budget: calls wait, other requests are refused.", []string{"budget"}, nil)
)

// shownUsers limits the users of a budget in the metrics.
const shownUsers = 5

// Describe is part of prometheus.Collector.
func (c mountCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{mountsDesc, remainingDesc, offsetDesc, budgetUsedDesc, budgetMostDesc, budgetUserDesc, budgetExceededDesc} {
		descs <- desc
	}
}

// Collect is part of prometheus.Collector.
func (c mountCollector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	session := c.session.Load()
	gauge(mountsDesc, oneIf(session != nil))
	if session != nil {
		gauge(remainingDesc, (*session).Remaining().Seconds())
		gauge(offsetDesc, time.Duration((*session).Status().GetClockOffset()).Seconds())
	}
	for _, pool := range c.allBudgets() {
		collectBudget(metrics, pool.Usage(shownUsers))
	}
}

func collectBudget(metrics chan<- prometheus.Metric, usage budget.Usage) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value uint64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, float64(value), append([]string{usage.Each.Budget}, labels...)...)
	}
	send(budgetUsedDesc, prometheus.GaugeValue, usage.Total)
	send(budgetMostDesc, prometheus.GaugeValue, usage.Each.Most)
	send(budgetExceededDesc, prometheus.CounterValue, usage.Refused)
	for _, use := range usage.Users {
		uid := ""
		if use.Key.Host == "" {
			uid = strconv.FormatUint(uint64(use.Key.UID), 10)
		}
		send(budgetUserDesc, prometheus.GaugeValue, use.Used, uid, use.Key.Host)
	}
}

// budgetUses returns the budgets of this process and their largest users.
func (m *MountMetrics) budgetUses(host string) (uses []*storepb.BudgetUse) {
	for _, pool := range m.allBudgets() {
		usage := pool.Usage(shownUsers)
		for _, use := range usage.Users {
			shown := &storepb.BudgetUse{
				Budget: usage.Each.Budget, Host: use.Key.Host, Used: use.Used, Most: usage.Each.Most, Setting: usage.Each.Setting,
			}
			if use.Key.Host == "" {
				shown.Host, shown.Uid = host, &use.Key.UID
			}
			uses = append(uses, shown)
		}
	}
	return uses
}

// latencyBuckets reach from a local read to a timeout.
var latencyBuckets = []float64{
	25e-6, 50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25.6e-3, 51.2e-3, .1, .25, 1, 4, 16,
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
