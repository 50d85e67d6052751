package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// Recovery makes a cluster of one of a voter that is left of a cluster without a majority.
//
// It takes all entries of its log for committed. Those that a majority had are among them if this voter's log is the newest of
// enough voters ([Recovery.MissingVoters]); others were never acknowledged, or were by voters that are lost.
type Recovery struct {
	// State is all that this voter has.
	State *namespace.Namespace
	// Last is the last entry of its log, or of its snapshot if that stands for all.
	Last Position
	// LastAppended is when its leader made it; zero: that is not known any more.
	LastAppended time.Time

	dir            *Directory
	files          *storage
	configurations []raft.Configuration // the newest one, and the one before if that is known
}

// Position is where a log ends. Of two logs that is the newer one whose last entry is of a later term, or of the same term and has
// the higher index (Ongaro, section 3.6.1): whatever a majority has is in the newest log of those that such a majority cannot do
// without.
type Position struct {
	Term  ids.Term
	Index ids.Index
}

// Newer tells whether a log that ends here has entries that one that ends there lacks.
func (p Position) Newer(than Position) bool {
	return p.Term > than.Term || p.Term == than.Term && p.Index > than.Index
}

// OpenRecovery opens the data directory of a voter that does not run, and checks it as a start does. No node uses it until it
// is closed.
func OpenRecovery(path string, logger *slog.Logger) (*Recovery, error) {
	id, err := loadIdentity(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no data directory of a lockfs server: it has no %s; name another with --data, that of `lockfs server`",
			path, IdentityFile)
	}
	if err != nil {
		return nil, err
	}
	if err := id.checkVersion(path, version.Own()); err != nil {
		return nil, err
	}
	if !id.Joined {
		return nil, fmt.Errorf("the server of %s was never in a cluster: there is nothing to recover", path)
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	r := &Recovery{dir: &Directory{Path: path, Identity: *id, lock: lock, versions: version.Own()}}
	cfg := &Config{Logger: logger, StepDown: NewStepDown(), Fail: func(error) {}} // whoever writes is told of errors
	if r.files, r.State, err = openStorage(r.dir, cfg); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := r.read(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close lets a node use the directory.
func (r *Recovery) Close() error { return errors.Join(r.files.close(), r.dir.Close()) }

// Path is the directory's.
func (r *Recovery) Path() string { return r.dir.Path }

// Node is whose directory it is.
func (r *Recovery) Node() Identity { return r.dir.Identity }

// Voters are those of the newest configuration that this voter knows.
func (r *Recovery) Voters() []raft.Server {
	return slices.DeleteFunc(slices.Clone(r.configurations[0].Servers), func(s raft.Server) bool { return s.Suffrage != raft.Voter })
}

// MissingVoters tells how many voters more have to be compared, none of which may have a newer log, until it is sure that this voter
// has all that was ever acknowledged. compared are the ids of those that have been, without its own. Every majority has one of
// such voters: of the newest configuration, and of the one before, since the newest may never have been committed.
func (r *Recovery) MissingVoters(compared []string) (misses int) {
	for _, configuration := range r.configurations {
		voters, known := 0, 0
		for _, server := range configuration.Servers {
			if server.Suffrage != raft.Voter {
				continue
			}
			voters++
			if string(server.ID) == r.dir.ID || slices.Contains(compared, string(server.ID)) {
				known++
			}
		}
		majority := voters/2 + 1
		misses = max(misses, voters-majority+1-known)
	}
	return misses
}

// Do makes the directory that of a cluster of one, whose state begins anew (namespace.BeginAnew). It answers the index from which
// it goes on. After an error the directory is as it was, or done. The error is namespace.ErrClockBehind if now is behind the numbers of
// the state, which pastClock accepts.
func (r *Recovery) Do(now time.Time, pastClock bool) (ids.Index, error) {
	cluster := NewClusterID()
	if err := r.State.BeginAnew(now, namespace.Anew{Cluster: cluster, Survivor: r.dir.Name, PastClock: pastClock}); err != nil {
		return 0, err
	}
	if err := r.dir.restart(r.files.votes, r.files.snapshots, r.State, r.Last.Term); err != nil {
		return 0, fmt.Errorf("recover %s: %w", r.dir.Path, err)
	}
	// Were it cut off here, the next start would do it (Directory.followState).
	return r.State.Index(), r.dir.SetCluster(cluster)
}

// read brings the state to the end of the log.
func (r *Recovery) read() error {
	base, err := r.readSnapshot()
	if err != nil {
		return err
	}
	last, err := r.files.log.LastIndex()
	if err != nil {
		return err
	}
	for index := uint64(r.files.snapshot.index) + 1; index <= last; index++ {
		entry := new(raft.Log)
		if err := r.files.log.GetLog(index, entry); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
		r.Last, r.LastAppended = Position{ids.Term(entry.Term), ids.Index(entry.Index)}, entry.AppendedAt
		switch entry.Type {
		case raft.LogCommand:
			if err := r.apply(entry); err != nil {
				return err
			}
		case raft.LogConfiguration:
			base = append(base, raft.DecodeConfiguration(entry.Data))
		}
	}
	if len(base) == 0 {
		return fmt.Errorf("%s knows of no voters: there is nothing to recover", r.dir.Path)
	}
	slices.Reverse(base)
	r.configurations = base[:min(2, len(base))]
	return nil
}

func (r *Recovery) apply(entry *raft.Log) error {
	cmd, err := codec.DecodeCommand(entry.Data)
	if err == nil {
		err = codec.CheckKnown(entry.Data, cmd)
	}
	if err != nil {
		return fmt.Errorf("entry %d: %w", entry.Index, err)
	}
	r.State.Apply(ids.Index(entry.Index), cmd)
	return nil
}

// readSnapshot answers the configuration in the newest snapshot, if there is one.
func (r *Recovery) readSnapshot() ([]raft.Configuration, error) {
	metas, err := r.files.snapshots.List()
	if err != nil || len(metas) == 0 {
		return nil, err
	}
	r.Last = Position{ids.Term(metas[0].Term), ids.Index(metas[0].Index)}
	if info, err := os.Stat(filepath.Join(r.dir.Path, snapshotDir, metas[0].ID, stateFile)); err == nil {
		r.LastAppended = info.ModTime()
	}
	return []raft.Configuration{metas[0].Configuration}, nil
}
