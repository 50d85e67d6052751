package consensus

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"

	"lockfs/cluster/atomicfile"
	"lockfs/cluster/consensus/wal"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// Create makes the data directory of a new cluster of one, which starts from a state of the given term.
// The directory must be empty or missing, or left by an interrupted Create. furnish, which may be nil,
// adds the files and records of a secure cluster. After an error the directory is empty again.
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
	if err := errors.Join(err, log.Close(), votes.Close(), atomicfile.SyncDir(path)); err != nil {
		return fmt.Errorf("make the data directory %s: %w", path, err)
	}
	if err := d.SetJoined(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(path, incompleteFile)); err != nil {
		return err
	}
	return atomicfile.SyncDir(path) // from here on it is a node's
}

// incompleteFile marks a directory until Create has finished.
const incompleteFile = "incomplete"

// createdNames are the names that Create makes, besides the lock and incompleteFile.
var createdNames = []string{
	IdentityFile, IdentityFile + atomicfile.Unfinished, votesFile, logDir, snapshotDir, CredentialsDir, SealKeyFile, SealKeyFile + atomicfile.Unfinished,
}

// markIncomplete marks an empty directory.
func markIncomplete(path string) error {
	if err := requireEmpty(path); err != nil { // another process may have used it before the lock
		return err
	}
	if err := atomicfile.Replace(filepath.Join(path, incompleteFile), []byte("lockfs restore makes this directory\n")); err != nil {
		return err
	}
	return removeCreated(path)
}

// removeCreated removes everything made by Create but the mark.
func removeCreated(path string) (err error) {
	for _, name := range createdNames {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, name)))
	}
	return err
}

// isIncomplete reports whether Create was interrupted in a directory.
func isIncomplete(path string) bool {
	_, err := os.Lstat(filepath.Join(path, incompleteFile))
	return err == nil
}

// Bootstrap makes a node the only voter of a new cluster, in a directory opened with Claim.Bootstrap.
// After an interruption call it again. In the directory of a cluster it does nothing.
func (d *Directory) Bootstrap(cfg Config) (err error) {
	if d.HasJoined() {
		return nil
	}
	cfg.StepDown, cfg.Fail = NewStepDown(), func(error) {} // the write itself returns the error
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

// bootstrap replaces raft.BootstrapCluster, which leaves a node without a configuration if it is
// interrupted between term and entry.
func (s *storage) bootstrap(first raft.Configuration) error {
	last, err := s.logs.LastIndex()
	if err != nil || last > 0 { // an earlier attempt came this far
		return err
	}
	next := s.votes.stored
	next.current = 1
	if err := s.votes.save(next); err != nil {
		return err
	}
	return s.logs.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(first)})
}

// onlyVoter returns the configuration of a cluster of this node alone.
func (d *Directory) onlyVoter() raft.Configuration {
	address := raft.ServerAddress(d.Address)
	if address == "" {
		address = aloneAddress
	}
	return raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(d.ID), Address: address}}}
}

// requireEmpty returns an error for a directory with other files than those of the file system or an
// interrupted Create.
func requireEmpty(path string) error {
	passed := []string{"lost+found", lockFile, incompleteFile, incompleteFile + atomicfile.Unfinished}
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

// restart makes a directory's node the only voter of a cluster that starts from a state. It is complete
// once the snapshot exists: the next start drops entries before the snapshot (dropReplaced).
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
