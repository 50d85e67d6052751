package hosts

import "fmt"

// Cut cuts the host off: nothing reaches it and nothing leaves it, and nobody
// is told. Its loopback works on.
func (h *Host) Cut() {
	h.net.t.Helper()
	h.fatal("cut", h.net.wires.nft(fmt.Sprintf("add element bridge faults cut { %q }", port(h))))
}

// CutFrom drops what arrives from another host; what is sent to it passes.
func (h *Host) CutFrom(from *Host) {
	h.net.t.Helper()
	pair := fmt.Sprintf("%q . %q", port(from), port(h))
	h.fatal("cut from "+from.name, h.net.wires.nft("add element bridge faults oneway { "+pair+" }"))
}

// Heal undoes Cut, and CutFrom in both directions.
func (h *Host) Heal() {
	h.net.t.Helper()
	// Adding an element first makes deleting one that is not there no error.
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

// LinkDown pulls the cable: the host sees that its interface has no link.
func (h *Host) LinkDown() {
	h.net.t.Helper()
	h.fatal("link down", h.net.wires.ip("link", "set", "dev", port(h), "down"))
}

// LinkUp plugs the cable in again.
func (h *Host) LinkUp() {
	h.net.t.Helper()
	h.fatal("link up", h.net.wires.ip("link", "set", "dev", port(h), "up"))
}

// Freeze stops every process of the host at once, as pausing a virtual machine
// does, and returns when none runs any more. Clocks go on.
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
