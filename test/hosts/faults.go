package hosts

import (
	"fmt"
	"strconv"
	"time"
)

// Cut cuts the host off: packets to and from it are dropped without an error. Its loopback still works.
func (h *Host) Cut() {
	h.net.t.Helper()
	h.fatal("cut", h.net.wires.nft(fmt.Sprintf("add element bridge faults cut { %q }", port(h))))
}

// CutFrom drops packets from another host; packets to it pass.
func (h *Host) CutFrom(from *Host) {
	h.net.t.Helper()
	pair := fmt.Sprintf("%q . %q", port(from), port(h))
	h.fatal("cut from "+from.name, h.net.wires.nft("add element bridge faults oneway { "+pair+" }"))
}

// CutLink drops all packets between this host and another one. Both still reach all others.
func (h *Host) CutLink(other *Host) {
	h.net.t.Helper()
	h.fatal("cut the link with "+other.name, h.net.wires.nft(fmt.Sprintf("add element bridge faults oneway { %q . %q, %[2]q . %[1]q }", port(h), port(other))))
}

// HealLink undoes CutLink, and CutFrom in both directions, for this pair of hosts only.
func (h *Host) HealLink(other *Host) {
	h.net.t.Helper()
	pairs := fmt.Sprintf("element bridge faults oneway { %q . %q, %[2]q . %[1]q }", port(h), port(other))
	h.fatal("heal the link with "+other.name, h.net.wires.nft("add "+pairs+"\ndelete "+pairs))
}

// Heal undoes Cut, CutLink, and CutFrom in both directions.
func (h *Host) Heal() {
	h.net.t.Helper()
	// Adding an element first avoids an error when deleting a missing one.
	element := func(set, key string) string {
		return fmt.Sprintf("add element bridge faults %s { %s }\ndelete element bridge faults %[1]s { %[2]s }\n", set, key)
	}
	rules := element("cut", fmt.Sprintf("%q", port(h)))
	for _, other := range h.net.others(h) {
		rules += element("oneway", fmt.Sprintf("%q . %q", port(other), port(h)))
		rules += element("oneway", fmt.Sprintf("%q . %q", port(h), port(other)))
	}
	h.fatal("heal", h.net.wires.nft(rules))
}

// Slow limits the rate to and from the host and drops packets delayed by more than longest.
func (h *Host) Slow(kbits int, longest time.Duration) {
	h.net.t.Helper()
	bucket := []string{
		"root", "tbf", "rate", strconv.Itoa(kbits) + "kbit", "burst", "10kb", "latency", strconv.Itoa(int(longest.Milliseconds())) + "ms",
	}
	h.fatal("slow", runOn(h.net.wires.thread, "", "tc", append([]string{"qdisc", "replace", "dev", port(h)}, bucket...)...))
	h.fatal("slow", runOn(h.thread, "", "tc", append([]string{"qdisc", "replace", "dev", "eth0"}, bucket...)...))
}

// Fast undoes Slow.
func (h *Host) Fast() {
	h.net.t.Helper()
	h.fatal("fast", runOn(h.net.wires.thread, "", "tc", "qdisc", "del", "dev", port(h), "root"))
	h.fatal("fast", runOn(h.thread, "", "tc", "qdisc", "del", "dev", "eth0", "root"))
}

// Lose drops a percentage of the packets to and from the host at random.
func (h *Host) Lose(percent int) {
	h.net.t.Helper()
	h.fatal("lose", h.net.wires.nft(fmt.Sprintf(`
add table bridge %[1]s
add chain bridge %[1]s forward { type filter hook forward priority 1; }
add rule bridge %[1]s forward iifname %[2]q numgen random mod 100 < %[3]d drop
add rule bridge %[1]s forward oifname %[2]q numgen random mod 100 < %[3]d drop
`, losses(h), port(h), percent)))
}

// LoseNone undoes Lose.
func (h *Host) LoseNone() {
	h.net.t.Helper()
	h.fatal("lose none", h.net.wires.nft("delete table bridge "+losses(h)))
}

func losses(h *Host) string { return "losses-" + h.name }

// LinkDown pulls the cable: the host's interface has no link.
func (h *Host) LinkDown() {
	h.net.t.Helper()
	h.fatal("link down", h.net.wires.ip("link", "set", "dev", port(h), "down"))
}

// LinkUp plugs the cable in again.
func (h *Host) LinkUp() {
	h.net.t.Helper()
	h.fatal("link up", h.net.wires.ip("link", "set", "dev", port(h), "up"))
}

// Freeze stops every process of the host at once, like a paused virtual machine, and returns when none runs
// any more. Clocks go on.
func (h *Host) Freeze() {
	h.net.t.Helper()
	h.fatal("freeze", h.init.command(commandFreeze))
}

// Thaw lets every process of the host run again.
func (h *Host) Thaw() {
	h.net.t.Helper()
	h.fatal("thaw", h.init.command(commandThaw))
}

func (n *Net) others(than *Host) []*Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	var others []*Host
	for _, h := range n.hosts {
		if h != than {
			others = append(others, h)
		}
	}
	return others
}
