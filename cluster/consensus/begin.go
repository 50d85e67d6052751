package consensus

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus/wal"
	"lockfs/cluster/durable"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// Found makes a data directory of a new cluster of one, whose first state that of the namespace is; term is that which it was in.
// The directory must be empty, or not there yet. furnish, which may be nil, puts into it what else the node has of a
// secure cluster, and into the state what that has to know of it. What is
// left of the directory after an error is empty again.
func Found(
	path string, claim Claim, state *namespace.Namespace, term ids.Term, furnish func() error, logger *slog.Logger,
) (err error) {
	if !ValidName(claim.Name) {
		return fmt.Errorf("node name %q: it takes 1 to 63 letters, digits, '.', '_' and '-'; give another with --name", claim.Name)
	}
	if err := requireEmpty(path); err != nil {
		return err
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return err
	}
	d := &Directory{Path: path, Identity: newIdentity(claim.Name, claim.Address), lock: lock, versions: version.Own()}
	d.Cluster = state.Cluster()
	defer func() {
		if err != nil {
			for _, made := range []string{IdentityFile, votesFile, logDir, snapshotDir, CredentialsDir, SealKeyFile, lockFile} {
				_ = os.RemoveAll(filepath.Join(path, made))
			}
		}
		err = errors.Join(err, d.Close())
	}()
	if furnish != nil {
		if err := furnish(); err != nil {
			return err
		}
	}
	snapshots, err := openSnapshots(path, logger)
	if err != nil {
		return err
	}
	votes, err := openVotes(filepath.Join(path, votesFile), false)
	if err != nil {
		return err
	}
	log, err := wal.Open(filepath.Join(path, logDir), false, raftLogger(logger, slog.LevelDebug), wal.Once)
	if err != nil {
		return errors.Join(err, votes.Close())
	}
	err = d.begin(votes, snapshots, state, term)
	if err := errors.Join(err, log.Close(), votes.Close(), durable.SyncDir(path)); err != nil {
		return fmt.Errorf("make the data directory %s: %w", path, err)
	}
	return d.SetJoined() // from here on it is a node's
}

// Bootstrap makes the node of a directory that was opened for it (Claim.Bootstrap) the only voter of a new cluster. It can be
// interrupted at any moment and called again. Where the directory belongs to a cluster it does nothing.
func (d *Directory) Bootstrap(cfg Config) (err error) {
	if d.HasJoined() {
		return nil
	}
	cfg.Silence, cfg.Fail = NewWithdrawal(), func(error) {} // the error of the write is returned
	files, _, err := openStorage(d, &cfg)
	if err != nil {
		return err
	}
	err = files.bootstrap(d.onlyVoter())
	if err := errors.Join(err, files.close()); err != nil {
		return fmt.Errorf("bootstrap a cluster: write %s: %w", d.Path, err)
	}
	return d.SetJoined()
}

// bootstrap is raft.BootstrapCluster, which leaves a node without a configuration if it is interrupted between the term and the entry.
func (s *storage) bootstrap(first raft.Configuration) error {
	last, err := s.logs.LastIndex()
	if err != nil || last > 0 { // an attempt before this one came so far
		return err
	}
	next := s.votes.stored
	next.current = 1
	if err := s.votes.save(next); err != nil {
		return err
	}
	return s.logs.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(first)})
}

// onlyVoter is the configuration of a cluster of the directory's node alone.
func (d *Directory) onlyVoter() raft.Configuration {
	address := raft.ServerAddress(d.Address)
	if address == "" {
		address = aloneAddress
	}
	return raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(d.ID), Address: address}}}
}

// requireEmpty passes over what a file system has by itself.
func requireEmpty(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" {
			return fmt.Errorf("%s is not empty (it has %q): name a directory that is, or is not there yet", path, entry.Name())
		}
	}
	return err
}

// begin makes a directory's node the only voter of a cluster that starts from a state. That is done once the snapshot is there:
// entries of the log that end before it are dropped when the node starts (dropReplaced).
func (d *Directory) begin(votes *voteStore, snapshots *snapshotStore, state *namespace.Namespace, term ids.Term) error {
	if err := d.enter(state.Version()); err != nil {
		return err
	}
	term = max(term, votes.stored.current) + 1
	next := votes.stored
	next.current = term
	if err := votes.save(next); err != nil {
		return err
	}
	_, local := raft.NewInmemTransport(aloneAddress)
	snapshot := state.Snapshot()
	index := uint64(snapshot.Index())
	sink, err := snapshots.Create(raft.SnapshotVersionMax, index, uint64(term), d.onlyVoter(), index, local)
	if err != nil {
		return err
	}
	if err := snapshot.Write(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}
