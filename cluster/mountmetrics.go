package cluster

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/storepb"
)

// MountMetrics is what a process counts that has a mount, or could have one.
type MountMetrics struct {
	Registry   *prometheus.Registry
	operations *prometheus.HistogramVec
	build      *prometheus.GaugeVec
	session    atomic.Pointer[MountSession]
}

// MountSession is the session of a mount.
type MountSession interface {
	// Status is what the mount knows of itself.
	Status() *storepb.MountStatus
	// Remaining is for how long the session lasts if it is not confirmed again.
	Remaining() time.Duration
}

// NewMountMetrics makes a registry with the metrics of the Go runtime and the process in it.
func NewMountMetrics() *MountMetrics {
	m := &MountMetrics{
		Registry: prometheus.NewRegistry(),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lockfs_mount_operations_seconds", Help: "Operations of the kernel on this process's mount, by operation and errno name (OK for none).",
			Buckets: latencyBuckets,
		}, []string{"operation", "result"}),
		build: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lockfs_build_info", Help: "1, with the version of lockfs and of Go.",
		}, []string{"version", "go_version"}),
	}
	m.Registry.MustRegister(m.operations, m.build, mountCollector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// SetVersion says which version of lockfs this is.
func (m *MountMetrics) SetVersion(version string) {
	m.build.Reset()
	m.build.WithLabelValues(version, runtime.Version()).Set(1)
}

// SetMount says that this process has a mount with that session; nil: it has none.
func (m *MountMetrics) SetMount(session MountSession) {
	if session == nil {
		m.session.Store(nil)
		return
	}
	m.session.Store(&session)
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

// mountCollector asks the session of a mount.
type mountCollector struct{ *MountMetrics }

var _ prometheus.Collector = mountCollector{}

var (
	mountsDesc    = prometheus.NewDesc("lockfs_mounts", "Mounts of this process.", nil, nil)
	remainingDesc = prometheus.NewDesc("lockfs_mount_session_remaining_seconds",
		"For how long the session of this process's mount lasts if the cluster does not confirm it again; 0: it is not confirmed.", nil, nil)
	offsetDesc = prometheus.NewDesc("lockfs_mount_clock_offset_seconds",
		"How far this host's clock is ahead of cluster time, as its mount measures it.", nil, nil)
)

// Describe is part of prometheus.Collector.
func (c mountCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{mountsDesc, remainingDesc, offsetDesc} {
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
}

// latencyBuckets reach from a read in this process to an operation that timed out.
var latencyBuckets = []float64{
	25e-6, 50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25.6e-3, 51.2e-3, .1, .25, 1, 4, 16,
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
