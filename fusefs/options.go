package fusefs

import (
	"context"
	"iter"
	"log/slog"
	"syscall"
	"time"

	"lockfs/fusefs/observation"
)

// Options are all optional.
type Options struct {
	Logger *slog.Logger // slog.Default() if nil
	FsName string       // source in /proc/mounts; "lockfs" if empty
	Debug  bool         // log every request and answer
	// MountOptions are further options of mount(8) that the kernel knows for any file system: ro, noexec, ...
	MountOptions []string
	Observer     Observer
	Budgets      *Budgets // of the users of the mount; those of NewBudgets(Limits{}) if nil
	// RootIsNobody tells whether root of this host may do no more than a user who is nobody (uid 65534), once that is known. nil: it may do
	// everything.
	RootIsNobody func(context.Context) (bool, error)
	// Family answers the process that a thread belongs to, and its nearest ancestors in the same process
	// group, nearest first; none if the thread cannot be seen. Without it a removal is held to nothing that
	// was seen before.
	Family func(thread uint32) iter.Seq[observation.Process]
}

// Observer is told of each request of the kernel that is more than a formality (as flush and fsync are
// here): its name ("lookup"), its outcome (0 is success) and how long it took. It is called from many
// goroutines.
type Observer func(op string, code syscall.Errno, d time.Duration)
