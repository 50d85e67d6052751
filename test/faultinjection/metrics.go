package faultinjection

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockfs/test/hosts"
)

const leasedInodes = "lockfs_leased_inodes"

// metrics reads the metrics of a daemon periodically.
type metrics struct {
	client  *http.Client
	address string

	mu   sync.Mutex
	last sample
}

// A sample has a daemon's metrics: sums over all labels, by name.
type sample struct {
	at      time.Time
	values  map[string]float64
	changed map[string]time.Time // the last change of some values
}

func newMetrics(h *hosts.Host, address string) *metrics {
	dial := func(context.Context, string, string) (net.Conn, error) { return h.Dial(address) }
	return &metrics{
		client:  &http.Client{Transport: &http.Transport{DialContext: dial, MaxConnsPerHost: 1}, Timeout: 500 * time.Millisecond},
		address: address,
		last:    sample{changed: make(map[string]time.Time)},
	}
}

// ask takes a sample. If the daemon does not answer, the last one stays.
func (m *metrics) ask() {
	answer, err := m.client.Get("http://" + m.address + "/metrics")
	if err != nil {
		return
	}
	defer answer.Body.Close()
	values := parse(answer.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, name := range []string{"lockfs_raft_term", "lockfs_raft_voters", "lockfs_snapshot_index", "lockfs_certificate_expiry_timestamp_seconds"} {
		if before, known := m.last.values[name]; known && before != values[name] {
			m.last.changed[name] = now
		}
	}
	// Only the leader reports these. Unused leases end, too.
	before, led := m.last.values[leasedInodes]
	if still, leads := values[leasedInodes]; led && leads && still < before {
		m.last.changed[leasedInodes] = now
	}
	m.last.at, m.last.values = now, values
}

// seen returns the last sample if it is fresh.
func (m *metrics) seen() (s sample, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	const old = 2 * time.Second
	return m.last, time.Since(m.last.at) < old
}

// recently reports whether a value has just changed.
func (m *metrics) recently(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.last.changed[name]) < time.Second
}

func parse(text io.Reader) map[string]float64 {
	values := make(map[string]float64)
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Text()
		name := line
		if end := strings.IndexAny(line, "{ "); end >= 0 {
			name = line[:end]
		}
		if strings.HasPrefix(name, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64); err == nil {
			values[name] += value
			if silent := `lockfs_hosts{state="silent"}`; strings.HasPrefix(line, silent) {
				values[silent] = value
			}
		}
	}
	return values
}
