package consensus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// restoreSnapshot returns the state and last entry of the newest snapshot, the one that raft starts from.
// With an older one and a log truncated after the newest, entries would be missing.
func restoreSnapshot(dir string, store *snapshotStore) (state *namespace.Namespace, last position, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, snapshotDir))
	if err != nil {
		return nil, last, fmt.Errorf("list snapshots: %w", err)
	}
	metas, err := store.List()
	if err != nil {
		return nil, last, fmt.Errorf("list snapshots: %w", err)
	}
	listed := make(map[string]bool, len(metas))
	for _, meta := range metas {
		listed[meta.ID] = true
	}
	for i := len(entries) - 1; i >= 0 && len(metas) < keptSnapshots; i-- {
		name := entries[i].Name()
		if !listed[name] {
			return nil, last, whyNotListed(filepath.Join(dir, snapshotDir, name, "meta.json"))
		}
	}
	if len(metas) == 0 {
		return namespace.New(), last, nil
	}
	path := filepath.Join(dir, snapshotDir, metas[0].ID, stateFile)
	_, reader, err := store.Open(metas[0].ID)
	if err != nil {
		return nil, last, damagedOr(path, err)
	}
	defer func() { _ = reader.Close() }()
	if state, err = namespace.Restore(reader); err != nil {
		return nil, last, damagedOr(path, err)
	}
	return state, position{ids.Index(metas[0].Index), ids.Term(metas[0].Term)}, nil
}

// whyNotListed returns the fault of a snapshot's description that raft skips.
func whyNotListed(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return damagedOr(path, err)
	}
	var meta raft.SnapshotMeta
	if err := json.Unmarshal(content, &meta); err != nil {
		return damagedOr(path, err)
	}
	if meta.Version > raft.SnapshotVersionMax {
		return damagedOr(path, fmt.Errorf("version %d: %w", meta.Version, codec.ErrNewer))
	}
	return damagedOr(path, errors.New("it cannot be read"))
}
