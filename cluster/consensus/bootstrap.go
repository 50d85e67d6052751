package consensus

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus/wal"
	"lockfs/cluster/durable"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// Create makes a data directory of a new cluster of one, whose first state that of the namespace is; term is that which it was in.
// The directory must be empty, not there yet, or left by an interrupted Found, which it removes. furnish, which may be nil, puts into it what else
// the node has of a secure cluster, and into the state what that has to know of it. After an error the directory is empty again.
func Create(
	path string, claim Claim, state *namespace.Namespace, term ids.Term, furnish func() error, logger *slog.Logger,
) (err error) {
	if !ValidName(claim.Name) {
		return fmt.Errorf("node name %q: it takes 1 to 63 letters, digits, '.', '_' and '-'; give another with --name", claim.Name)
	}
	if err := requireEmpty(path); err != nil { // before anything is written
		return err
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return err
	}
	if err := markIncomplete(path); err != nil {
		return errors.Join(err, lock.Close())
	}
	d := &Directory{Path: path, Identity: newIdentity(claim.Name, claim.Address), lock: lock, versions: version.Own()}
	d.Cluster = state.Cluster()
	defer func() {
		if err != nil {
			_ = errors.Join(removeCreated(path), os.Remove(filepath.Join(path, incompleteFile)), os.Remove(filepath.Join(path, lockFile)))
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
	err = d.restart(votes, snapshots, state, term)
	if err := errors.Join(err, log.Close(), votes.Close(), durable.SyncDir(path)); err != nil {
		return fmt.Errorf("make the data directory %s: %w", path, err)
	}
	if err := d.SetJoined(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(path, incompleteFile)); err != nil {
		return err
	}
	return durable.SyncDir(path) // from here on it is a node's
}

// incompleteFile is in a directory until Found has made all of it.
const incompleteFile = "incomplete"

// createdNames are the names that Found makes in a directory, besides the lock and incompleteFile.
var createdNames = []string{
	IdentityFile, IdentityFile + durable.Unfinished, votesFile, logDir, snapshotDir, CredentialsDir, SealKeyFile, SealKeyFile + durable.Unfinished,
}

// markIncomplete marks a directory as incomplete, once it is empty.
func markIncomplete(path string) error {
	if err := requireEmpty(path); err != nil { // another process may have used it until it was locked
		return err
	}
	if err := durable.Replace(filepath.Join(path, incompleteFile), []byte("lockfs restore makes this directory\n")); err != nil {
		return err
	}
	return removeCreated(path)
}

// removeCreated removes all that Found makes in a directory but the mark.
func removeCreated(path string) (err error) {
	for _, name := range createdNames {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, name)))
	}
	return err
}

// isIncomplete reports whether Found was interrupted in a directory.
func isIncomplete(path string) bool {
	_, err := os.Lstat(filepath.Join(path, incompleteFile))
	return err == nil
}

// Bootstrap makes the node of a directory that was opened for it (Claim.Bootstrap) the only voter of a new cluster. It can be
// interrupted at any moment and called again. Where the directory belongs to a cluster it does nothing.
func (d *Directory) Bootstrap(cfg Config) (err error) {
	if d.HasJoined() {
		return nil
	}
	cfg.StepDown, cfg.Fail = NewStepDown(), func(error) {} // the error of the write is returned
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

// requireEmpty returns an error if a directory has files of other origin than the file system itself or an interrupted Found.
func requireEmpty(path string) error {
	passed := []string{"lost+found", lockFile, incompleteFile, incompleteFile + durable.Unfinished}
	if isIncomplete(path) {
		passed = append(passed, createdNames...)
	}
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if !slices.Contains(passed, entry.Name()) {
			return fmt.Errorf("%s is not empty (it has %q): name a directory that is, or is not there yet", path, entry.Name())
		}
	}
	return err
}

// restart makes a directory's node the only voter of a cluster that starts from a state. That is done once the snapshot is there:
// entries of the log that end before it are dropped when the node starts (dropReplaced).
func (d *Directory) restart(votes *voteStore, snapshots *snapshotStore, state *namespace.Namespace, term ids.Term) error {
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
