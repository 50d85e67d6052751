package tower

import (
	"fmt"

	"lockfs/formats/lockfact"
)

// Mode is the mode of an intent (section 9.1).
type Mode string

// The modes.
const (
	Observe   Mode = "observe"
	Mutate    Mode = "mutate"
	Reconcile Mode = "reconcile"
)

// ParseMode parses the name of a mode.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Observe, Mutate, Reconcile:
		return m, nil
	}
	problem := fmt.Sprintf("%q is none of %s, %s and %s", s, Observe, Mutate, Reconcile)
	return "", &lockfact.FieldError{Field: "mode", Problem: problem}
}

// Locks reports whether an intent of this mode acquires its lock; controlsLock is its controls.lock, which
// may be empty. It also returns a warning if the intent should have a lock. Observe never locks and never
// blocks (section 9.2). The others lock the given name. Without a name they run with a warning (section 9.3
// for mutate; 9.1 says that reconcile should lock).
func (m Mode) Locks(controlsLock string) (lock bool, warning string) {
	switch {
	case m == Observe:
		return false, ""
	case controlsLock != "":
		return true, ""
	case m == Mutate:
		return false, "Mutate intent without lock - concurrent execution possible"
	}
	return false, "Reconcile intent without lock - conflicting reconciliation possible"
}
