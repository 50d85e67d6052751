package consensus

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus/wal"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
)

func openLog(path string, snapshot position, used bool, logger *slog.Logger, space *diskReserve) (*wal.Log, entrySizes, error) {
	var sizes entrySizes
	log, err := wal.Open(path, used, raftLogger(logger, slog.LevelDebug), space.retryWhenFull)
	if damage := new(wal.Damage); errors.As(err, &damage) {
		return nil, sizes, &DamagedError{Path: damage.Path, Err: damage.Err}
	}
	if err != nil {
		return nil, sizes, err
	}
	if sizes, err = checkEntries(log, snapshot.index); err != nil {
		return nil, sizes, errors.Join(damagedOr(path, err), log.Close())
	}
	dropped, err := dropReplaced(log, snapshot)
	if err != nil {
		return nil, sizes, errors.Join(fmt.Errorf("%s: %w", path, err), log.Close())
	}
	if dropped {
		sizes = entrySizes{}
	}
	return log, sizes, nil
}

// dropReplaced deletes a log that ends before the snapshot, because it has no gaps and raft continues
// after the snapshot. It also deletes a log with another entry at the snapshot's end: that one was never
// committed. Such a log is left if the process ended between a leader's snapshot and the end of the log
// before it.
func dropReplaced(log raft.LogStore, snapshot position) (dropped bool, err error) {
	first, err := log.FirstIndex()
	if err != nil {
		return false, err
	}
	last, err := log.LastIndex()
	if err != nil || last == 0 || ids.Index(first) > snapshot.index {
		return false, err
	}
	if ids.Index(last) >= snapshot.index {
		var entry raft.Log
		if err := log.GetLog(uint64(snapshot.index), &entry); err != nil || positionOf(&entry) == snapshot {
			return false, err
		}
	}
	return true, log.DeleteRange(first, last)
}

// checkEntries reads every entry of the log, which must continue the snapshot without a gap, and returns
// their sizes.
func checkEntries(log raft.LogStore, snapshot ids.Index) (sizes entrySizes, err error) {
	first, err := log.FirstIndex()
	if err != nil {
		return sizes, err
	}
	last, err := log.LastIndex()
	if err != nil {
		return sizes, err
	}
	if ids.Index(first) > snapshot+1 {
		return sizes, fmt.Errorf("entries %d to %d are missing", snapshot+1, first-1)
	}
	for index := first; index <= last && last > 0; index++ {
		var entry raft.Log
		if err := log.GetLog(index, &entry); err != nil {
			return sizes, fmt.Errorf("entry %d: %w", index, err)
		}
		if entry.Index != index {
			return sizes, fmt.Errorf("entry %d says that it is %d", index, entry.Index)
		}
		sizes.add(&entry)
		if entry.Type != raft.LogCommand {
			continue
		}
		if err := codec.CheckCommand(entry.Data); err != nil {
			return sizes, fmt.Errorf("entry %d: %w", index, err)
		}
	}
	return sizes, nil
}

// cachedEntries is how many of the newest entries are also kept in memory, for the followers.
const cachedEntries = 64

func logCache(logs raft.LogStore) raft.LogStore {
	cache, err := raft.NewLogCache(cachedEntries, logs)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return cache
}
