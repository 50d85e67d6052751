package fusefs

import (
	"iter"
	"log/slog"

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
	// Family answers the process that a thread belongs to, and its nearest ancestors in the same process
	// group, nearest first; none if the thread cannot be seen. Without it a removal is held to nothing that
	// was seen before.
	Family func(thread uint32) iter.Seq[observation.Process]
}
