package consensus

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// Config is what raft is assembled with.
type Config struct {
	// Network is how the other voters are reached, and reach this one at its Addr; nil: a single node without network.
	Network raft.StreamLayer
	// Addresses are where they were met; nil: where the configuration has them.
	Addresses *LearnedAddresses
	// Instances says which process of each server counts; nil: every one does.
	Instances Instances
	Logger    *slog.Logger
	// SnapshotEntries is the least number of log entries after which a snapshot is taken; 0: 8192.
	SnapshotEntries uint64
	// Elected is told true when this node has won an election, and false when it leads no more. Raft waits for its reader.
	Elected chan<- bool
	// StepDown begins when the disk fails or hangs; from then on nothing is said to other nodes.
	StepDown *StepDown
	// OnStore is called before entries are stored; nil: nobody wants to know.
	OnStore func()
	// Wrote is told how long each write of the log and of votes took until it was on disk; nil: nobody wants to know.
	Wrote func(time.Duration)
	// Writing does each write of the log and of votes, and has it on disk when it returns; nil: the write itself is all. It lets a
	// simulation have a disk that takes its time.
	Writing func(write func() error) error
	// MinFree is how many bytes are to be free on the disk, of which a part is kept in reserve (see the package documentation);
	// 0: there is no reserve.
	MinFree uint64
	// Fail is told why this node cannot go on.
	Fail func(error)
	// CannotApply is told of an entry that cannot be applied as the other nodes do (raftstore.NewFSM).
	CannotApply func(error)
	// Entries lets tests put something between a log and its disk; nil: nothing.
	Entries func(raft.LogStore) raft.LogStore

	// snapshotBytes is the least number of bytes of the log after which a snapshot is taken; 0: 64 MiB.
	snapshotBytes uint64
}
