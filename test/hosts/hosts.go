// Package hosts makes several hosts out of one machine, for tests.
//
// A host is a set of network, mount, pid and uts namespaces: it has an address, a host name, its own /proc
// and its own mounts, and shares the file system below with the others. So only one host sees a mount, while
// a file in t.TempDir() is on the local disk of every host. Tests keep files there that must not depend on
// the tested program.
//
// The hosts of a Net are connected by one switch. A packet dropped by Cut or CutFrom disappears in the switch
// without an error for its sender, as in a real network.
//
// Nothing outlives the test. No namespace has a name, and each host has an init that ends with the test
// process. Then the kernel ends every process of the host, its mounts and its network.
//
// The package needs root, and TestMain must call [Main] first. The test process itself never touches a file
// system mounted on a host; only programs on the hosts do. So a hanging mount does not hang the test.
package hosts

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Patience limits the waits of the package. It is far above all usual times; a passing test never reaches it.
const Patience = 60 * time.Second

// A Net is a network with its hosts. It ends with its test.
type Net struct {
	t   testing.TB
	dir string

	wires *wires

	mu        sync.Mutex
	hosts     []*Host
	processes map[*Process]bool // those that may still run
	logs      []*Process        // output to print if the test fails
}

// New returns an empty network for the time of the test.
func New(t testing.TB) *Net {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("hosts: making hosts out of namespaces needs root")
	}
	// The directory is created first, so that it is removed last.
	n := &Net{t: t, dir: t.TempDir(), processes: make(map[*Process]bool)}
	wires, err := newWires()
	if err != nil {
		t.Fatalf("hosts: %v", err)
	}
	n.wires = wires
	t.Cleanup(n.close)
	return n
}

// Dir returns a directory on the local disk shared by all hosts, until the end of the test.
func (n *Net) Dir() string { return n.dir }

// Host returns the host of that name, and creates a missing one. Names have at most ten characters.
func (n *Net) Host(name string) *Host {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		if h.name == name {
			return h
		}
	}
	h := &Host{net: n, name: name, addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(len(n.hosts) + 1)})}
	n.hosts = append(n.hosts, h)
	if err := h.boot(); err != nil {
		n.t.Fatalf("hosts: host %s: %v", name, err)
	}
	return h
}

// close prints the processes' output if the test failed, and ends the hosts.
func (n *Net) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.t.Failed() {
		n.printLogs()
	}
	for _, h := range n.hosts {
		if err := h.halt(); err != nil {
			n.t.Errorf("hosts: host %s does not end: %v%s", h.name, err, h.stuck())
			if err := h.endMounts(); err != nil {
				n.t.Errorf("hosts: the mounts of host %s: %v", h.name, err)
			}
		}
	}
	for p := range n.processes {
		if err := p.waitEnd(); err != nil {
			n.t.Errorf("hosts: left behind: %v", err)
		}
	}
	if err := n.wires.close(); err != nil {
		n.t.Errorf("hosts: %v", err)
	}
}

// LogsVariable names a directory for the whole output of a failed test's processes. The test itself prints
// only the end of each.
const LogsVariable = "LOCKFS_TEST_LOGS"

func (n *Net) printLogs() {
	dir := os.Getenv(LogsVariable)
	if dir != "" {
		dir = filepath.Join(dir, n.t.Name())
		if err := os.MkdirAll(dir, 0o755); err != nil {
			n.t.Logf("hosts: keep logs: %v", err)
		}
	}
	for i, p := range n.logs {
		n.t.Logf("=== %s\n%s", p.state(), tail(p.Log()))
		if dir == "" {
			continue
		}
		name := fmt.Sprintf("%02d-%s-%s.log", i, p.host.name, filepath.Base(p.cmd.Path))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(p.state()+"\n"+p.Log()), 0o644); err != nil {
			n.t.Logf("hosts: keep logs: %v", err)
		}
	}
}

func (n *Net) track(p *Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.processes[p] = true
}

func (n *Net) forget(p *Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.processes, p)
}

func (n *Net) keepLog(p *Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.logs = append(n.logs, p)
}

// A Host is one of the hosts on a Net.
type Host struct {
	net  *Net
	name string
	addr netip.Addr

	init         *initProcess
	pidNamespace string // as in /proc/PID/ns/pid
	thread       *thread
}

// Name returns the host's name, which is also its hostname.
func (h *Host) Name() string { return h.name }

// Net returns the network of the host.
func (h *Host) Net() *Net { return h.net }

// Addr returns the host's address, such as "10.77.0.1".
func (h *Host) Addr() string { return h.addr.String() }

func (h *Host) boot() error {
	var err error
	if h.init, err = startInit(h.name); err != nil {
		return err
	}
	if h.pidNamespace, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.init.pid())); err != nil {
		return err
	}
	if h.thread, err = startThread(func() error { return enterHost(h.init.pid()) }); err != nil {
		return err
	}
	if err := h.net.wires.attach(h); err != nil {
		return err
	}
	return nil
}

func (h *Host) halt() error {
	var err error
	if h.init != nil {
		err = h.init.end()
	}
	if h.thread != nil {
		if e := h.thread.end(); err == nil {
			err = e
		}
	}
	return err
}

// fatal fails the test because the package itself does not work.
func (h *Host) fatal(doing string, err error) {
	h.net.t.Helper()
	if err != nil {
		h.net.t.Fatalf("hosts: %s on host %s: %v", doing, h.name, err)
	}
}

// tail returns the end of a text, cut at the beginning of a line.
func tail(text string) string {
	const size = 4 << 10
	if len(text) <= size {
		return text
	}
	cut := len(text) - size
	for cut < len(text) && text[cut-1] != '\n' {
		cut++
	}
	return fmt.Sprintf("[%d bytes before]\n%s", cut, text[cut:])
}
