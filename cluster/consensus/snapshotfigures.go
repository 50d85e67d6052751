package consensus

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// SnapshotFigures describe a snapshot.
type SnapshotFigures struct {
	Index uint64
	Bytes int64
	Taken time.Time // when its last byte was written
}

// describeNewest looks for what an earlier process has left.
func (s *snapshotStore) describeNewest() error {
	kept, err := s.List()
	if err != nil || len(kept) == 0 {
		return err
	}
	s.describe(kept[0].Index, kept[0].ID)
	return nil
}

// describe keeps in mind what there is to say of the newest snapshot: who asks does not wait for the disk. One that is gone
// again has a newer one in its place, which is described next.
func (s *snapshotStore) describe(index uint64, id string) {
	info, err := os.Stat(filepath.Join(s.dir, id, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	figure := &SnapshotFigures{Index: index}
	if err == nil {
		figure.Bytes, figure.Taken = info.Size(), info.ModTime()
	}
	s.figure.Store(figure)
}
