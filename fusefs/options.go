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
	// MountOptions are further file-system independent options of mount(8): ro, noexec, ...
	MountOptions []string
	Observer     Observer
	Budgets      *Budgets // per user; NewBudgets(Limits{}) if nil
	// RootIsNobody reports whether root of this host has only the rights of uid 65534 (root squash), once
	// this is known. nil: root has all rights.
	RootIsNobody func(context.Context) (bool, error)
	// Family returns the process of a thread and its nearest ancestors in the same process group, nearest
	// first. It returns none for an invisible thread. nil: no observation guards a removal.
	Family func(thread uint32) iter.Seq[observation.Process]
}

// Observer receives the name ("lookup"), the outcome (0 is success) and the duration of each request, except
// formalities such as flush and fsync. Many goroutines call it.
type Observer func(op string, code syscall.Errno, d time.Duration)
