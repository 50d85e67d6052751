package fusefs

import (
	"sync"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// dirHandle is one open directory.
type dirHandle struct {
	ino ids.Inode

	mu      sync.Mutex
	at      uint64              // cookie of the last returned entry
	fetched []*storepb.DirEntry // later entries which did not fit
}
