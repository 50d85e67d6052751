package lockfact

import (
	"fmt"
	"math"
	"time"
)

// Rule is what an administrator set for the locks of some path pattern. The zero Rule changes nothing.
type Rule struct {
	Format      Format        // locks of this format only, one of another is None; Data: no locks; 0: of any
	StaleAfter  time.Duration // semaphore: instead of 3600 s; none: since the file's mtime; 0: not set
	OnStale     OnStale       // 0: as the format has it
	Guard       Guard         // 0: as the format has it
	HostTimeout time.Duration // how long a silent host's process locks stay; 0: until it is back
	Holder      Holder        // 0: as the content has it
	AnyFile     bool          // the rule removes whatever fits it, not only what is a lock without it (Removes)
}

// Validate checks every field that is set and names the first that is wrong.
func (r Rule) Validate() error {
	if r.Format > Data {
		return &FieldError{"format", fmt.Sprintf("%d is none of %v", r.Format, Formats())}
	}
	if r.Format == Data && r != (Rule{Format: Data}) {
		return &FieldError{"format", "what is data is no lock, so the rule can have no other setting"}
	}
	if r.StaleAfter < 0 {
		return &FieldError{"stale-after", "must not be negative"}
	}
	if r.OnStale > Remove {
		return &FieldError{"on-stale", fmt.Sprintf("must be %s or %s", Keep, Remove)}
	}
	if r.Guard > GuardAnyone {
		return &FieldError{"guard", fmt.Sprintf("must be %s or %s", GuardHost, GuardAnyone)}
	}
	if r.HostTimeout < 0 {
		return &FieldError{"host-timeout", "must not be negative"}
	}
	if r.Holder > HolderCreator {
		return &FieldError{"holder", fmt.Sprintf("must be %s", HolderCreator)}
	}
	if r.AnyFile && !r.Removes() {
		return &FieldError{"any-file", "is for rules that remove: with on-stale remove, or holder creator without on-stale keep"}
	}
	return nil
}

// Removes reports whether the rule has lockfs remove what it would keep otherwise. Such a rule applies only to names that are locks
// on evidence of their own ([Evidence.MayRemove]), unless AnyFile is set: yarn.lock fits *.lock, and is data.
func (r Rule) Removes() bool {
	return r.OnStale == Remove || r.Holder == HolderCreator && r.OnStale != Keep
}

// Claims reports whether the rule makes a lock of whatever fits it, also of what would be data otherwise. To
// say what becomes of locks (OnStale, HostTimeout), or that anybody may remove them, makes none.
func (r Rule) Claims() bool {
	switch r.Format {
	case 0, None, Data:
		return r.Holder != 0 || r.StaleAfter != 0 || r.Guard == GuardHost
	}
	return true
}

// Override gives the facts with the guard and the on-stale action that the rule sets.
func (r Rule) Override(f Facts) Facts {
	if r.Guard != 0 {
		f.Guard = r.Guard
	}
	if r.OnStale != 0 {
		f.OnStale = r.OnStale
	}
	return f
}

// CheckPID refuses what cannot be a process on any system, with a FieldError for pid: numbers that are
// not positive, or do not fit 31 bits.
func CheckPID(pid int64) error {
	if pid < 1 || pid > math.MaxInt32 {
		return &FieldError{"pid", "must be between 1 and 2147483647"}
	}
	return nil
}

// FieldError says which field of a content, a request or a rule is wrong, and how.
type FieldError struct {
	Field   string // as the specification spells it
	Problem string
}

// Error is "field: problem".
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }
