package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"lockfs/raftstore/lockjson"
)

// lockFilter selects locks; empty fields select all.
type lockFilter struct {
	states []string
	host   string
}

// LockStates are the values of `lockfs locks --state`. Invalid and waiting locks have one of the other states
// too.
var LockStates = []string{"held", "stale", "unreachable", stateInvalid, stateWaiting, "removed", lockjson.StateExclusive}

const (
	stateInvalid = "invalid"
	stateWaiting = "waiting"
)

func (f *lockFilter) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.states, "state", nil, "only locks in one of these states: "+strings.Join(LockStates, ", "))
	flags.StringVar(&f.host, "host", "", "only locks with a holder or a waiter on this host")
}

func (f *lockFilter) check() error {
	for _, state := range f.states {
		if !slices.Contains(LockStates, state) {
			return fmt.Errorf("--state %q: give one of %s", state, strings.Join(LockStates, ", "))
		}
	}
	return nil
}

// of returns the selected locks.
func (f *lockFilter) of(locks []lockjson.Lock) []lockjson.Lock {
	return slices.DeleteFunc(slices.Clone(locks), func(l lockjson.Lock) bool { return !f.hasState(l) || !f.hasHost(l) })
}

func (f *lockFilter) hasState(l lockjson.Lock) bool {
	return len(f.states) == 0 || slices.ContainsFunc(f.states, func(state string) bool {
		switch state {
		case stateInvalid:
			return l.Invalid != ""
		case stateWaiting:
			return l.Waiting > 0
		}
		return l.State == state
	})
}

func (f *lockFilter) hasHost(l lockjson.Lock) bool {
	return f.host == "" || l.Host == f.host || slices.ContainsFunc(l.Advisory, func(a lockjson.Advisory) bool { return a.Host == f.host })
}
