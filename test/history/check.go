package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

// History is the calls of several clients in one or more directories.
type History struct {
	Calls []*Call
	// Settled is the time from which calls of unknown outcome have no further effect; 0: never.
	Settled int64
	// SessionsLast: no mount lost its session, so files removed by a mount stay writable through open
	// descriptors.
	SessionsLast bool
	// Forgetful: earlier looks do not restrict removals, as on any other file system.
	Forgetful bool
	// DisksFill: servers may have run out of space and refused commands.
	DisksFill bool
}

// Check returns nil if there is an order. within limits the search in each directory.
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
	x, err := expand(calls, settled, h.Forgetful, h.DisksFill)
	if err != nil {
		return err
	}
	rules := (&model{asked: x.asked, sessionsLast: h.SessionsLast}).porcupine()
	return search(rules, x.operations, within)
}

// checkNumbers requires a new inode number for each creation.
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
	switch a.verb {
	case doTakeBack:
		return "taking back of " + a.call.String()
	case doGiveUp:
		return "giving up of " + a.call.String()
	}
	return a.call.String()
}

// Tally returns the number of calls by result.
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

// Interrupted returns the calls with EINTR. None of these may.
func (h *History) Interrupted() []*Call {
	return slices.DeleteFunc(slices.Clone(h.Calls), func(c *Call) bool { return c.Errno != syscall.EINTR })
}
