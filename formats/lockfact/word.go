package lockfact

import "fmt"

// State is what a lock is at a moment. It is worked out whenever somebody asks, and kept nowhere.
type State string

// The states of a lock. Unreachable means that its holder's host is silent; no content says that.
const (
	Held        State = "held"
	Stale       State = "stale"
	Unreachable State = "unreachable"
)

// Guard says who may remove, overwrite or rename over a lock while it lives. Its number is what the log has of it; the
// zero Guard is none, in a rule that of the format.
type Guard uint16

// The guards.
const (
	GuardHost   Guard = iota + 1 // only from the host that wrote it
	GuardAnyone                  // from everywhere
	GuardOwner                   // only with the owner token
)

// String is the word that is shown and that rules spell; empty for none.
func (g Guard) String() string { return word(g, "", "host", "anyone", "owner") }

// ParseGuard accepts what a rule may set: host or anyone.
func ParseGuard(s string) (Guard, error) {
	for _, g := range []Guard{GuardHost, GuardAnyone} {
		if s == g.String() {
			return g, nil
		}
	}
	return 0, fmt.Errorf("guard: %q is neither %s nor %s", s, GuardHost, GuardAnyone)
}

// OnStale says what lockfs does with a lock that has become stale. Its number is what the log has of it; the zero OnStale
// is none, in a rule that of the format.
type OnStale uint16

// What happens to a stale lock.
const (
	Keep   OnStale = iota + 1 // it stays; whoever wants it next deals with it
	Remove                    // lockfs removes it
)

// String is the word that is shown and that rules spell; empty for none.
func (o OnStale) String() string { return word(o, "", "keep", "remove") }

// ParseOnStale accepts keep or remove.
func ParseOnStale(s string) (OnStale, error) {
	for _, o := range []OnStale{Keep, Remove} {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("on-stale: %q is neither %s nor %s", s, Keep, Remove)
}

// Holder says who holds what fits a rule, whatever its content. The zero Holder is who the content says.
type Holder uint16

// HolderCreator is the process that made the name exclusively. If that ends at once, as touch(1) and mkdir(1)
// do, it is the nearest ancestor in its process group that lives on.
const HolderCreator Holder = 1

// String is the word that rules spell; empty for the zero Holder.
func (h Holder) String() string { return word(h, "", "creator") }

// ParseHolder accepts creator.
func ParseHolder(s string) (Holder, error) {
	if s == HolderCreator.String() {
		return HolderCreator, nil
	}
	return 0, fmt.Errorf("holder: %q is not %s", s, HolderCreator)
}

// word is empty for a number that has none.
func word[T ~uint16](number T, words ...string) string {
	if int(number) >= len(words) {
		return ""
	}
	return words[number]
}
