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
	at      uint64              // cookie of the last entry that the kernel was given
	fetched []*storepb.DirEntry // entries after it that did not fit
}
