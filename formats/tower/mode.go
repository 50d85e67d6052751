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

// ParseMode accepts the name of a mode.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Observe, Mutate, Reconcile:
		return m, nil
	}
	problem := fmt.Sprintf("%q is none of %s, %s and %s", s, Observe, Mutate, Reconcile)
	return "", &lockfact.FieldError{Field: "mode", Problem: problem}
}

// Locks reports whether an intent of this mode, whose controls.lock is given or empty, takes its lock,
// and a warning to show if it should have one. Observe never locks and is never blocked (section 9.2);
// the others lock what they name, and run with a warning when they name nothing (section 9.3, which
// has it for mutate; 9.1 says that reconcile should lock).
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
