package consensus

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus/wal"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Inspection is a read-only view of a data directory. Its node may run.
type Inspection struct {
	ID          string    // of the node, as other data directories name it
	Node        string    // name
	First, Last ids.Index // entries of the log; 0: none
	LastTerm    ids.Term  // of the last entry; 0: none
	Unread      string    // where an incomplete batch follows the last entry; empty: none
	// Snapshot is the newest; nil: none.
	Snapshot *SnapshotInfo
	log      *wal.View
}

// SnapshotInfo has the last entry covered by a snapshot.
type SnapshotInfo struct {
	Index ids.Index
	Term  ids.Term
}

// Inspect reads a data directory.
func Inspect(dir string) (*Inspection, error) {
	id, err := loadIdentity(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no data directory of a lockfs server: it has no %s; name another with --data, that of `lockfs server`",
			dir, IdentityFile)
	}
	if err != nil {
		return nil, err
	}
	found := &Inspection{ID: id.ID, Node: id.Name}
	if found.Snapshot, err = newestSnapshot(filepath.Join(dir, snapshotDir)); err != nil {
		return nil, err
	}
	if found.log, err = wal.OpenView(filepath.Join(dir, logDir)); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	found.First, found.Last, found.Unread = ids.Index(found.log.First), ids.Index(found.log.Last), found.log.Unread
	if found.Last == 0 {
		return found, nil
	}
	last, err := found.log.Entry(uint64(found.Last))
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	found.LastTerm = ids.Term(last.Term)
	return found, nil
}

// Entry is an entry of the log.
type Entry struct {
	Index      ids.Index
	Term       ids.Term
	Type       string
	AppendedAt time.Time         // by the leader's clock; zero: unknown
	Command    *storepb.Command  // of type command; it may have parts unknown to this program
	Servers    map[string]string // of type configuration: voters and others, from id to address
	Err        error             // why the content cannot be read
}

// Entry returns an entry of the log.
func (i *Inspection) Entry(index ids.Index) (*Entry, error) {
	if i.Snapshot != nil && index > 0 && index <= i.Snapshot.Index && (index < i.First || i.First == 0) {
		return nil, fmt.Errorf("entry %d is not in the log any more: the snapshot stands for all up to %d", index, i.Snapshot.Index)
	}
	found, err := i.log.Entry(uint64(index))
	if err != nil {
		return nil, err
	}
	entry := &Entry{Index: ids.Index(found.Index), Term: ids.Term(found.Term), Type: fmt.Sprintf("type %d", found.Type), AppendedAt: found.AppendedAt}
	switch found.Type {
	case raft.LogCommand:
		entry.Type = "command"
		entry.Command, entry.Err = codec.DecodeCommand(found.Data)
	case raft.LogNoop:
		entry.Type = "noop"
	case raft.LogBarrier:
		entry.Type = "barrier"
	case raft.LogConfiguration:
		entry.Type = "configuration"
		entry.Servers, entry.Err = serversOf(found.Data)
	}
	return entry, nil
}

func serversOf(data []byte) (servers map[string]string, err error) {
	defer func() {
		if p := recover(); p != nil { // raft cannot read it
			err = fmt.Errorf("%v", p)
		}
	}()
	servers = make(map[string]string)
	for _, server := range raft.DecodeConfiguration(data).Servers {
		servers[string(server.ID)] = fmt.Sprintf("%s (%v)", server.Address, server.Suffrage)
	}
	return servers, nil
}

// newestSnapshot reads raft's descriptions of its snapshots, without unreadable ones.
func newestSnapshot(dir string) (*SnapshotInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	var found []raft.SnapshotMeta
	for _, entry := range entries {
		var meta raft.SnapshotMeta
		content, err := os.ReadFile(filepath.Join(dir, entry.Name(), "meta.json"))
		if err == nil && filepath.Ext(entry.Name()) != ".tmp" && json.Unmarshal(content, &meta) == nil {
			found = append(found, meta)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	newest := slices.MaxFunc(found, func(a, b raft.SnapshotMeta) int {
		return cmp.Or(cmp.Compare(a.Term, b.Term), cmp.Compare(a.Index, b.Index))
	})
	return &SnapshotInfo{ids.Index(newest.Index), ids.Term(newest.Term)}, nil
}
