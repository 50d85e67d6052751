package lockfact

import (
	"fmt"
	"math"
	"time"
)

// Rule is an administrator's setting for the locks of a path pattern. The zero Rule changes nothing.
type Rule struct {
	Format      Format        // for this format, others are None; Data: no locks; 0: any
	StaleAfter  time.Duration // semaphore: instead of 3600 s; none: since the file's mtime; 0: not set
	OnStale     OnStale       // 0: by the format
	Guard       Guard         // 0: by the format
	HostTimeout time.Duration // how long a silent host's process locks stay; 0: until it is back
	Holder      Holder        // 0: by the content
	AnyFile     bool          // the rule removes all matching files, not only locks by their own evidence (Removes)
}

// Validate returns an error about the first invalid field.
func (r Rule) Validate() error {
	if r.Format > Data {
		return &FieldError{"format", fmt.Sprintf("%d is none of %v", r.Format, Formats())}
	}
	if r.Format == Data && r != (Rule{Format: Data}) {
		return &FieldError{"format", "data is no lock, so the rule can have no other setting"}
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

// Removes reports whether lockfs removes files by this rule and would keep them otherwise. Such a rule
// applies only to locks by their own evidence ([Evidence.MayRemove]), unless AnyFile is set: yarn.lock
// matches *.lock, and is data.
func (r Rule) Removes() bool {
	return r.OnStale == Remove || r.Holder == HolderCreator && r.OnStale != Keep
}

// Claims reports whether the rule makes locks of all matching files, even of data. Settings for locks
// (OnStale, HostTimeout) and the guard "anyone" do not.
func (r Rule) Claims() bool {
	switch r.Format {
	case 0, None, Data:
		return r.Holder != 0 || r.StaleAfter != 0 || r.Guard == GuardHost
	}
	return true
}

// Override returns the facts with the guard and the on-stale action set by the rule.
func (r Rule) Override(f Facts) Facts {
	if r.Guard != 0 {
		f.Guard = r.Guard
	}
	if r.OnStale != 0 {
		f.OnStale = r.OnStale
	}
	return f
}

// CheckPID returns a FieldError for pid if no system can have such a process: numbers below 1, or of more
// than 31 bits.
func CheckPID(pid int64) error {
	if pid < 1 || pid > math.MaxInt32 {
		return &FieldError{"pid", "must be between 1 and 2147483647"}
	}
	return nil
}

// FieldError reports a wrong field of a content, a request or a rule.
type FieldError struct {
	Field   string // as the specification spells it
	Problem string
}

// Error returns "field: problem".
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }
