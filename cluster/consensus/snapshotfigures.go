package consensus

import (
	"errors"
	"os"
	"time"
)

// SnapshotFigures describe a snapshot.
type SnapshotFigures struct {
	Index uint64
	Bytes int64
	Taken time.Time // time of the last write
}

// figuresOf describes the snapshot with a state file; nil: it was deleted meanwhile.
func figuresOf(index uint64, file string) *SnapshotFigures {
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	figures := &SnapshotFigures{Index: index}
	if err == nil {
		figures.Bytes, figures.Taken = info.Size(), info.ModTime()
	}
	return figures
}
