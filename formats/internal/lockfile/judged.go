package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"lockfs/formats/lockfact"
)

// Judged is whether a mount of lockfs says that a lock of this format is stale: it knows how wrong the clock of the
// host was that wrote the lock, and how wrong this one's is. It is not known anywhere else, nor when a rule has it
// that this is no such lock.
func Judged(f *os.File, format lockfact.Format) (stale, known bool) {
	if AttributeOf(f, "format") != format.String() {
		return false, false
	}
	return AttributeOf(f, "state") == string(lockfact.Stale), true
}

// Watched is whether a mount of lockfs knows the process that a lock lives as long as, and has not seen it end. It may
// be one that cannot be seen from here, in a container with the name of this host. In doubt it is.
func Watched(f *os.File) bool {
	watched, err := attribute(descriptor(f), "watched")
	if errors.Is(err, fs.ErrNotExist) {
		return false // there is no /proc to ask through
	}
	return err != nil || watched != ""
}

// StaleAt is when the lock at path goes stale: what its content says, but on a mount of lockfs what that says, which
// is the cluster's time, and zero if it is not by time.
func StaleAt(path string, content time.Time) time.Time {
	if Attribute(path, "state") == "" {
		return content
	}
	return timeOf(path, "expires")
}

// Lifetime is how long after it was written the lock at path goes stale, on a mount of lockfs; 0: not by time. The error is for one that cannot be
// looked at, as a mount may end between two looks.
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
