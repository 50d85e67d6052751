package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

// History is calls of several clients, in one or more directories.
type History struct {
	Calls []*Call
	// Settled is the time from which on, as the caller knows, nothing of an unknown outcome is to be seen
	// any more; 0: never.
	Settled int64
	// SessionsLast: no mount lost its session, so what it removed it can write to for as long as it is open.
	SessionsLast bool
	// Forgetful: removals are held to nothing that was seen before, as on any other file system.
	Forgetful bool
}

// Errors of Check.
var (
	ErrImpossible = errors.New("there is no order in which these calls can have happened")
	ErrUndecided  = errors.New("not decided in time")
)

// Check answers nil if there is an order. within bounds the search in each directory.
func (h *History) Check(within time.Duration) error {
	byDir := make(map[string][]*Call)
	for _, call := range h.Calls {
		byDir[call.Dir] = append(byDir[call.Dir], call)
	}
	var failed []error
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		if err := h.checkDir(byDir[dir], within); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", dir, err))
		}
	}
	return errors.Join(failed...)
}

func (h *History) checkDir(calls []*Call, within time.Duration) error {
	if err := checkNumbers(calls); err != nil {
		return err
	}
	settled := h.Settled
	if settled == 0 {
		settled = never
	}
	x, err := expand(calls, settled, h.Forgetful)
	if err != nil {
		return err
	}
	rules := (&model{asked: x.asked, sessionsLast: h.SessionsLast}).porcupine()
	return checkOrder(rules, x.operations, within)
}

func checkOrder(rules porcupine.Model, operations []porcupine.Operation, within time.Duration) error {
	result := porcupine.CheckOperationsTimeout(rules, operations, within)
	if result == porcupine.Ok {
		return nil
	}
	_, info := porcupine.CheckOperationsVerbose(rules, operations, within)
	cause := ErrImpossible
	if result == porcupine.Unknown {
		cause = ErrUndecided
	}
	return fmt.Errorf("%w:\n%s", cause, describe(operations, info))
}

// checkNumbers requires that each creation made an inode of its own.
func checkNumbers(calls []*Call) error {
	made := make(map[uint64]*Call)
	for _, call := range calls {
		if call.Kind != Create || call.Errno != 0 || call.Got.Ino == 0 {
			continue
		}
		if other, twice := made[call.Got.Ino]; twice {
			return fmt.Errorf("%w: one inode was created twice:\n%v\n%v", ErrImpossible, other, call)
		}
		made[call.Got.Ino] = call
	}
	return nil
}

func (m *model) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return new(state).change().done() },
		Step: func(before, input, _ any) (bool, any) {
			after := m.step(before.(*state), input.(*action))
			return after != nil, after
		},
		Equal:             func(a, b any) bool { return a.(*state).equal(b.(*state)) },
		Hash:              func(s any) uint64 { return s.(*state).hash },
		DescribeOperation: func(input, _ any) string { return input.(*action).String() },
	}
}

func (a *action) String() string {
	if a.verb == doTakeBack {
		return "taking back of " + a.call.String()
	}
	return a.call.String()
}

// describe shows the calls in the order in which they began, and how far a search for an order got: the
// numbers are places in the longest one found. Of a long history it shows what is around the first that is not in that.
func describe(operations []porcupine.Operation, info porcupine.LinearizationInfo) string {
	const around = 30
	place := make(map[any]int) // of an action
	for _, partition := range info.PartialLinearizationsOperations() {
		var longest []porcupine.Operation
		for _, found := range partition {
			if len(found) > len(longest) {
				longest = found
			}
		}
		for i, operation := range longest {
			place[operation.Input] = i + 1
		}
	}
	sorted := slices.Clone(operations)
	slices.SortStableFunc(sorted, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	stuck := -1
	for i, o := range sorted {
		if place[o.Input] == 0 && (stuck < 0 || o.Return < sorted[stuck].Return) {
			stuck = i
		}
	}
	var b strings.Builder
	for i, operation := range sorted {
		if operation.Return != never && (i < stuck-around || i > stuck+around) {
			continue
		}
		at := "    -"
		if n := place[operation.Input]; n != 0 {
			at = fmt.Sprintf("%5d", n)
		}
		end := "      later"
		if operation.Return != never {
			end = fmt.Sprintf("%11.6f", float64(operation.Return-sorted[0].Call)/1e9)
		}
		fmt.Fprintf(&b, "%s %11.6f %s %v\n", at, float64(operation.Call-sorted[0].Call)/1e9, end, operation.Input)
	}
	return b.String()
}

// Tally is how often calls came out in which way.
func (h *History) Tally() map[string]int {
	count := make(map[string]int)
	for _, call := range h.Calls {
		count[call.outcome()]++
		if call.Unknown() {
			count["unknown"]++
		}
	}
	return count
}

// Interrupted lists the calls that failed with EINTR, which none of these may.
func (h *History) Interrupted() []*Call {
	return slices.DeleteFunc(slices.Clone(h.Calls), func(c *Call) bool { return c.Errno != syscall.EINTR })
}
