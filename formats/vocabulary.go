package formats

import (
	"lockfs/formats/internal/lockfile"
	"lockfs/formats/lockfact"
)

// ErrNotRegular reports a directory, symbolic link, pipe or the like in the place of a lock file.
var ErrNotRegular = lockfile.ErrNotRegular

// MaxContent is the maximum size of a lock in bytes. A larger file is a lock of no format, and never stale.
const MaxContent = lockfile.MaxContent

// TooLargeError reports a larger file.
type TooLargeError = lockfile.TooLargeError

// The types of [lockfact].
type (
	// Facts describes the lock of a content.
	Facts = lockfact.Facts

	// Origin is where and when a content was written.
	Origin = lockfact.Origin

	// Rule is an administrator's setting for some locks.
	Rule = lockfact.Rule

	// Format is a lock-file format.
	Format = lockfact.Format

	// State is the state of a lock at a moment.
	State = lockfact.State

	// Guard restricts the removal of a live lock.
	Guard = lockfact.Guard

	// OnStale is the treatment of a stale lock.
	OnStale = lockfact.OnStale

	// Holder selects the holder under a rule.
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

// HolderCreator is the process that created the name.
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

// Treatments of a stale lock.
const (
	Keep   = lockfact.Keep
	Remove = lockfact.Remove
)

// ParseFormat parses the name of a format.
func ParseFormat(s string) (Format, error) { return lockfact.ParseFormat(s) }
