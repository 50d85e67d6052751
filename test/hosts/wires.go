package hosts

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// wires is the switch with a cable to each host. Its network namespace has no process, only a thread of the
// test.
type wires struct {
	thread *thread
}

// The sets name the faults: blocked ports, and pairs of ports blocked in one direction.
const switchRules = `
table bridge faults {
	set cut { type ifname; }
	set oneway { type ifname . ifname; }
	chain forward {
		type filter hook forward priority 0; policy accept;
		iifname @cut drop
		oifname @cut drop
		iifname . oifname @oneway drop
	}
}
`

func newWires() (*wires, error) {
	thread, err := startThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	if err != nil {
		return nil, fmt.Errorf("make the switch: %w", err)
	}
	w := &wires{thread: thread}
	if err := w.ip("link", "add", "name", "switch", "up", "type", "bridge"); err != nil {
		return nil, err
	}
	if err := w.nft(switchRules); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *wires) close() error { return w.thread.end() }

// port is the switch's end of a host's cable.
func port(h *Host) string { return "port-" + h.name }

// attach connects a host whose init runs.
func (w *wires) attach(h *Host) error {
	pid := strconv.Itoa(h.init.pid())
	err := w.ip("link", "add", "name", port(h), "up", "master", "switch",
		"type", "veth", "peer", "name", "eth0", "netns", pid)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"link", "set", "dev", "lo", "up"},
		{"address", "add", h.Addr() + "/24", "dev", "eth0"},
		{"link", "set", "dev", "eth0", "up"},
	} {
		if err := runOn(h.thread, "", "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

func (w *wires) nft(rules string) error {
	return runOn(w.thread, rules, "nft", "--file", "-")
}

func (w *wires) ip(args ...string) error {
	return runOn(w.thread, "", "ip", args...)
}

// runOn runs a short program in the namespaces of a thread.
func runOn(t *thread, stdin, name string, args ...string) error {
	return t.do(func() error {
		var output bytes.Buffer
		cmd := exec.Command(name, args...)
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(output.String()))
		}
		return nil
	})
}
