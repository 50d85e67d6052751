// Package fulldisk has what tests need of a disk that is full for a while.
package fulldisk

import (
	"os"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"
)

// Log is one that finds no space (ENOSPC) while it is full.
type Log struct {
	raft.LogStore
	Full *atomic.Bool
}

// StoreLogs is part of raft.LogStore.
func (l Log) StoreLogs(entries []*raft.Log) error {
	if l.Full.Load() {
		return &os.PathError{Op: "write", Path: "log", Err: unix.ENOSPC}
	}
	return l.LogStore.StoreLogs(entries)
}
