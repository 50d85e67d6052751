package lockfact

import "fmt"

// State is the state of a lock at a moment. It is computed on request and never stored.
type State string

// The states of a lock. Unreachable means a silent host of the holder; no content says this.
const (
	Held        State = "held"
	Stale       State = "stale"
	Unreachable State = "unreachable"
)

// Guard restricts removing, overwriting and renaming over a live lock. Its number is in the log. The zero
// Guard is none; in a rule, the format's.
type Guard uint16

// The guards.
const (
	GuardHost   Guard = iota + 1 // only from the host that wrote it
	GuardAnyone                  // from everywhere
	GuardOwner                   // only with the owner token
)

// String returns the word in output and rules; empty for none.
func (g Guard) String() string { return word(g, "", "host", "anyone", "owner") }

// ParseGuard parses the guard of a rule: host or anyone.
func ParseGuard(s string) (Guard, error) {
	for _, g := range []Guard{GuardHost, GuardAnyone} {
		if s == g.String() {
			return g, nil
		}
	}
	return 0, fmt.Errorf("guard: %q is neither %s nor %s", s, GuardHost, GuardAnyone)
}

// OnStale is the treatment of a stale lock by lockfs. Its number is in the log. The zero OnStale is none; in
// a rule, the format's.
type OnStale uint16

// Treatments of a stale lock.
const (
	Keep   OnStale = iota + 1 // it stays; the next holder deals with it
	Remove                    // lockfs removes it
)

// String returns the word in output and rules; empty for none.
func (o OnStale) String() string { return word(o, "", "keep", "remove") }

// ParseOnStale parses keep or remove.
func ParseOnStale(s string) (OnStale, error) {
	for _, o := range []OnStale{Keep, Remove} {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("on-stale: %q is neither %s nor %s", s, Keep, Remove)
}

// Holder selects the holder of matching files, regardless of their content. The zero Holder is the content's.
type Holder uint16

// HolderCreator is the process that created the name exclusively. If it ends at once, like touch(1) and
// mkdir(1), the holder is its nearest lasting ancestor in the process group.
const HolderCreator Holder = 1

// String returns the word in rules; empty for the zero Holder.
func (h Holder) String() string { return word(h, "", "creator") }

// ParseHolder parses creator.
func ParseHolder(s string) (Holder, error) {
	if s == HolderCreator.String() {
		return HolderCreator, nil
	}
	return 0, fmt.Errorf("holder: %q is not %s", s, HolderCreator)
}

// word returns an empty string for an unknown number.
func word[T ~uint16](number T, words ...string) string {
	if int(number) >= len(words) {
		return ""
	}
	return words[number]
}
