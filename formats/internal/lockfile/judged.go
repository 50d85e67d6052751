package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"lockfs/formats/lockfact"
)

// Judged returns whether a lockfs mount says that a lock of this format is stale. The mount knows the clock
// offsets of this host and of the writer's host. known is false on other file systems, and if a rule excludes
// this file.
func Judged(f *os.File, format lockfact.Format) (stale, known bool) {
	if AttributeOf(f, "format") != format.String() {
		return false, false
	}
	return AttributeOf(f, "state") == string(lockfact.Stale), true
}

// Watched reports whether a lockfs mount watches the holder and has not seen its end. The holder may be
// invisible from here, in a container with the name of this host. In doubt, Watched is true.
func Watched(f *os.File) bool {
	watched, err := attribute(descriptor(f), "watched")
	if errors.Is(err, fs.ErrNotExist) {
		return false // no /proc: ask about the name
	}
	return err != nil || watched != ""
}

// StaleAt returns the time at which the lock at path becomes stale. A lockfs mount answers by cluster time;
// the result is zero if time does not make the lock stale. On other file systems the time comes from the
// content.
func StaleAt(path string, content time.Time) time.Time {
	if Attribute(path, "state") == "" {
		return content
	}
	return timeOf(path, "expires")
}

// Lifetime returns the time from a write to stale for the lock at path on a lockfs mount; 0: it does not
// become stale by time. The error means that the mount cannot be read.
func Lifetime(path string) (time.Duration, error) {
	said, err := attribute(path, "expires")
	if err != nil || said == "" {
		return 0, err
	}
	expires, err := time.Parse(time.RFC3339Nano, said)
	if err != nil {
		return 0, err
	}
	if said, err = attribute(path, "renewed"); err != nil {
		return 0, err
	}
	renewed, err := time.Parse(time.RFC3339Nano, said)
	return expires.Sub(renewed), err
}

func timeOf(path, attribute string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, Attribute(path, attribute))
	return at
}
