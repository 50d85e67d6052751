package lockfact

import "fmt"

// Format is the name of a lock-file format, as it is shown and as rules spell it.
type Format string

// The formats. None is any content that is not of one of the others, also an empty or half-written one.
const (
	Tower     Format = "tower"
	Semaphore Format = "semaphore"
	Swarm     Format = "swarm"
	Beads     Format = "beads"
	PID       Format = "pid"
	Forrst    Format = "forrst"
	None      Format = "none"
)

// Data is for rules only: what fits is data and no lock, whatever its content. No content is of it.
const Data Format = "data"

// Formats lists every format that a rule can have, None and Data last.
func Formats() []Format {
	return []Format{Tower, Semaphore, Swarm, Beads, PID, Forrst, None, Data}
}

// ParseFormat accepts the name of a format.
func ParseFormat(s string) (Format, error) {
	for _, f := range Formats() {
		if s == string(f) {
			return f, nil
		}
	}
	return "", fmt.Errorf("format: %q is none of %v", s, Formats())
}

// State is what a lock is at a moment.
type State string

// The states of a lock. Unreachable means that its holder's host is silent; no content says that, so
// no judgement in this package's siblings gives it.
const (
	Held        State = "held"
	Stale       State = "stale"
	Unreachable State = "unreachable"
)

// Guard says who may remove, overwrite or rename over a lock while it lives.
type Guard string

// The guards.
const (
	GuardHost   Guard = "host"   // only from the host that wrote it
	GuardAnyone Guard = "anyone" // from everywhere
	GuardOwner  Guard = "owner"  // only with the owner token
)

// ParseGuard accepts what a rule may set: host or anyone.
func ParseGuard(s string) (Guard, error) {
	switch g := Guard(s); g {
	case GuardHost, GuardAnyone:
		return g, nil
	}
	return "", fmt.Errorf("guard: %q is neither %s nor %s", s, GuardHost, GuardAnyone)
}

// OnStale says what lockfs does with a lock that has become stale.
type OnStale string

// What happens to a stale lock.
const (
	Keep   OnStale = "keep"   // it stays; whoever wants it next deals with it
	Remove OnStale = "remove" // lockfs removes it
)

// ParseOnStale accepts keep or remove.
func ParseOnStale(s string) (OnStale, error) {
	switch o := OnStale(s); o {
	case Keep, Remove:
		return o, nil
	}
	return "", fmt.Errorf("on-stale: %q is neither %s nor %s", s, Keep, Remove)
}

// Holder says who holds what fits a rule, whatever its content.
type Holder string

// HolderCreator is the process that made the name exclusively. If that ends at once, as touch(1) and mkdir(1)
// do, it is the nearest ancestor in its process group that lives on.
const HolderCreator Holder = "creator"

// ParseHolder accepts creator.
func ParseHolder(s string) (Holder, error) {
	if h := Holder(s); h == HolderCreator {
		return h, nil
	}
	return "", fmt.Errorf("holder: %q is not %s", s, HolderCreator)
}
