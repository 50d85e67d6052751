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

// Recovery makes a cluster of one of a voter left of a cluster without a quorum.
//
// It treats all entries of the voter's log as committed. Those on a majority of disks are among them if
// this log is the newest of enough voters ([Recovery.MissingVoters]). Others were never acknowledged, or
// only by lost voters.
type Recovery struct {
	// State is the voter's whole state.
	State *namespace.Namespace
	// Last is the last entry of its log, or of its snapshot if the log is empty.
	Last Position
	// LastAppended is when its leader made it; zero: unknown.
	LastAppended time.Time

	dir            *Directory
	files          *storage
	configurations []raft.Configuration // newest first, and the one before if known
}

// Position is the end of a log. A log is newer if its last entry has a later term, or a higher index in
// the same term (Ongaro, section 3.6.1). Among enough voters, the newest log has every committed entry.
type Position struct {
	Term  ids.Term
	Index ids.Index
}

// Newer reports whether a log with this end has entries that the other log lacks.
func (p Position) Newer(than Position) bool {
	return p.Term > than.Term || p.Term == than.Term && p.Index > than.Index
}

// OpenRecovery opens and checks the data directory of a stopped voter. No node can use it before Close.
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
	cfg := &Config{Logger: logger, StepDown: NewStepDown(), Fail: func(error) {}} // the caller of each write gets its error
	if r.files, r.State, err = openStorage(r.dir, cfg); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := r.read(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close unlocks the directory.
func (r *Recovery) Close() error { return errors.Join(r.files.close(), r.dir.Close()) }

// Path returns the path of the directory.
func (r *Recovery) Path() string { return r.dir.Path }

// Node returns the identity of the directory's node.
func (r *Recovery) Node() Identity { return r.dir.Identity }

// Voters returns the voters of the newest configuration known to this voter.
func (r *Recovery) Voters() []raft.Server {
	return slices.DeleteFunc(slices.Clone(r.configurations[0].Servers), func(s raft.Server) bool { return s.Suffrage != raft.Voter })
}

// MissingVoters returns how many more voters have to be compared, none with a newer log, to be sure that
// this voter has everything acknowledged. compared are the ids of the others compared so far. Each
// majority has one of these voters, in the newest configuration and in the one before, because the newest
// may never have been committed.
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

// Do turns the directory into a cluster of one with a rebased state (namespace.Namespace.Rebase), and returns
// its first index. After an error the directory is as it was, or done. The error is
// namespace.ErrClockBehind if now is behind the numbers of the state; pastClock accepts that.
func (r *Recovery) Do(now time.Time, pastClock bool) (ids.Index, error) {
	cluster := NewClusterID()
	if err := r.State.Rebase(now, namespace.RebaseOptions{Cluster: cluster, Survivor: r.dir.Name, PastClock: pastClock}); err != nil {
		return 0, err
	}
	if err := r.dir.restart(r.files.votes, r.files.snapshots, r.State, r.Last.Term); err != nil {
		return 0, fmt.Errorf("recover %s: %w", r.dir.Path, err)
	}
	// If this is interrupted, the next start completes it (Directory.followState).
	return r.State.Index(), r.dir.SetCluster(cluster)
}

// read applies the log to the state.
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

// readSnapshot returns the configuration in the newest snapshot, if there is one.
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
