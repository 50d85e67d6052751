package consensus

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// Config configures raft.
type Config struct {
	// Network connects the voters; nil: a single node without network.
	Network raft.StreamLayer
	// Addresses are learned ones; nil: only the configuration counts.
	Addresses *LearnedAddresses
	// Instances decides which process of each server counts; nil: every one.
	Instances Instances
	Logger    *slog.Logger
	// SnapshotEntries is the minimum number of log entries between two snapshots; 0: 8192.
	SnapshotEntries uint64
	// Elected receives true after a won election, and false at the end of leadership. Raft waits for the
	// reader.
	Elected chan<- bool
	// StepDown begins when the disk fails or hangs. From then on this node sends nothing to others.
	StepDown *StepDown
	// OnStore is called before entries are stored; nil disables it.
	OnStore func()
	// Wrote gets the time of each write of the log and of votes; nil disables it.
	Wrote func(time.Duration)
	// Writing does each write of the log and of votes durably; nil: a plain write. A simulation uses it
	// to delay writes.
	Writing func(write func() error) error
	// MinFree is the space in bytes to keep free on the disk. A part of it is a reserve (see the package
	// documentation); 0: no reserve.
	MinFree uint64
	// Fail gets the reason why this node cannot continue.
	Fail func(error)
	// CannotApply gets the error of an entry that this node cannot apply like the others
	// (raftstore.NewFSM).
	CannotApply func(error)
	// Entries lets tests wrap the log on disk; nil: no wrapper.
	Entries func(raft.LogStore) raft.LogStore

	// snapshotBytes is the minimum size of the log between two snapshots; 0: 64 MiB.
	snapshotBytes uint64
}
