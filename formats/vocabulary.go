package formats

import (
	"lockfs/formats/internal/lockfile"
	"lockfs/formats/lockfact"
)

// ErrNotRegular is a directory, symbolic link, pipe or the like where a lock would be a file.
var ErrNotRegular = lockfile.ErrNotRegular

// MaxContent is how many bytes a lock has at most. A file that has more is a lock of no format, which is never stale.
const MaxContent = lockfile.MaxContent

// TooLargeError is a file that has more.
type TooLargeError = lockfile.TooLargeError

// The words in which formats are spoken of are those of [lockfact].
type (
	// Facts is what a content says about its lock.
	Facts = lockfact.Facts

	// Origin is where and when a content was written.
	Origin = lockfact.Origin

	// Rule is what an administrator set for some locks.
	Rule = lockfact.Rule

	// Format is the name of a format.
	Format = lockfact.Format

	// State is what a lock is at a moment.
	State = lockfact.State

	// Guard is who may remove a lock while it lives.
	Guard = lockfact.Guard

	// OnStale is what happens to a stale lock.
	OnStale = lockfact.OnStale

	// Holder is who holds what fits a rule.
	Holder = lockfact.Holder

	// FieldError is an error about one field.
	FieldError = lockfact.FieldError
)

// The formats.
const (
	Tower     = lockfact.Tower
	Semaphore = lockfact.Semaphore
	Swarm     = lockfact.Swarm
	Beads     = lockfact.Beads
	PID       = lockfact.PID
	Forrst    = lockfact.Forrst
	None      = lockfact.None
	Data      = lockfact.Data // for rules only
)

// HolderCreator is the process that made the name.
const HolderCreator = lockfact.HolderCreator

// The states.
const (
	Held        = lockfact.Held
	Stale       = lockfact.Stale
	Unreachable = lockfact.Unreachable
)

// The guards.
const (
	GuardHost   = lockfact.GuardHost
	GuardAnyone = lockfact.GuardAnyone
	GuardOwner  = lockfact.GuardOwner
)

// What happens to a stale lock.
const (
	Keep   = lockfact.Keep
	Remove = lockfact.Remove
)

// ParseFormat accepts the name of a format.
func ParseFormat(s string) (Format, error) { return lockfact.ParseFormat(s) }
