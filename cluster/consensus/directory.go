package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// Files of a data directory besides IdentityFile.
const (
	lockFile    = "lock"        // locked (flock) while a node runs
	votesFile   = "votes.db"    // raft-boltdb: term and vote
	logDir      = "log"         // raft-wal: the log
	snapshotDir = "snapshots"   // raft's file snapshot store
	reserveFile = "reserve"     // reserve for a full disk
	AuditFile   = "audit.jsonl" // the audit trail; rotated files stand beside it

	// Copies of events that lock events must not rotate out; rotated files stand beside them.
	AdminAuditFile    = "audit-admin.jsonl"
	RefusalsAuditFile = "audit-refusals.jsonl"

	// Files of a secure cluster, made before raft's.
	CredentialsDir  = "identity"     // key and certificate
	SealKeyFile     = "ca.key"       // encrypts the CA's key
	BootstrapCAFile = "founding.pem" // the CA of a new cluster, until the state has it
)

// Directory is the data directory of a node. It is locked while it is open.
type Directory struct {
	Path     string
	Identity // while the node runs, read Cluster and Joined through the methods

	lock     *os.File
	versions version.Range // cluster versions known to the program
	mu       sync.Mutex    // guards changes of the identity
}

// Claim says which node opens a data directory, and for what.
type Claim struct {
	Name      string // of the node
	Address   string // for the other voters; empty: a single node
	Bootstrap bool   // bootstrap a cluster; ignored once the directory belongs to one
	Joins     bool   // join a cluster; likewise
	// Versions are the cluster versions known to the program; zero: this program's.
	Versions version.Range
}

func (c *Claim) versions() version.Range {
	if c.Versions == (version.Range{}) {
		return version.Own()
	}
	return c.Versions
}

// OpenDirectory opens a data directory, or creates it. It returns an error for a directory that belongs
// to another node or program, or is in use. It returns a [DamagedError] if parts are missing, and
// codec.ErrNewer or codec.ErrOlder, before any write, if the program does not know the cluster's version.
func OpenDirectory(path string, claim Claim) (*Directory, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !claim.Bootstrap && !claim.Joins {
		return nil, noCluster(path)
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	d := &Directory{Path: path, lock: lock, versions: claim.versions()}
	if isIncomplete(path) {
		return nil, errors.Join(restoreInterrupted(path), d.Close())
	}
	if err := d.identify(claim); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// NoClusterError reports a data directory in which no server can start before an administrator acts.
type NoClusterError struct {
	Dir    string
	Reason string // and advice
}

func (e *NoClusterError) Error() string { return "data directory " + e.Dir + " " + e.Reason }

// noCluster is the error for a directory without a cluster: a server with a lost disk must not bootstrap
// a second cluster beside its own.
func noCluster(path string) error {
	return &NoClusterError{path, "belongs to no cluster: to join one, give --token (--join if it has no certificates); to go on from a backup, " +
		"use `lockfs restore`; only to make a new cluster, run `lockfs server init` once"}
}

// HasIdentity reports whether a directory belongs to a node.
func HasIdentity(path string) bool {
	_, err := os.Stat(filepath.Join(path, IdentityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

func restoreInterrupted(path string) error {
	return &NoClusterError{path, "is incomplete: `lockfs restore` was interrupted; run it again with this --data"}
}

// ReadIdentity returns the identity of the server that owns a data directory; fs.ErrNotExist without one. It
// fails after an interrupted restore.
func ReadIdentity(path string) (*Identity, error) {
	if isIncomplete(path) {
		return nil, restoreInterrupted(path)
	}
	return loadIdentity(path)
}

// CheckUnused returns an error while a process uses a data directory.
func CheckUnused(path string) error {
	lock, err := lockDirectory(path)
	if err != nil {
		return err
	}
	return lock.Close()
}

// IsBootstrapping reports whether a bootstrap was interrupted in a directory ([Directory.Bootstrap]).
func IsBootstrapping(path string) bool {
	id, err := loadIdentity(path)
	return err == nil && id.Bootstrapping
}

// RequireCluster returns an error unless the node is in a cluster, or about to join one.
func (d *Directory) RequireCluster(joins bool) error {
	if d.HasJoined() || joins {
		return nil
	}
	return noCluster(d.Path)
}

// Close unlocks the directory.
func (d *Directory) Close() error { return d.lock.Close() }

// SetJoined records that the node is in the cluster's configuration.
func (d *Directory) SetJoined() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Joined, d.Bootstrapping = true, false
	return d.save(d.Path)
}

// HasJoined reports whether the node was ever in the cluster's configuration, as far as it knows.
func (d *Directory) HasJoined() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Joined
}

// ClusterID returns the id of the node's cluster; empty: not known yet.
func (d *Directory) ClusterID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Cluster
}

// SetCluster records the node's cluster.
func (d *Directory) SetCluster(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Cluster = id
	return d.save(d.Path)
}

// followState takes the cluster's id from the state, which completes an interrupted recovery.
func (d *Directory) followState(state *namespace.Namespace) error {
	if id := state.Cluster(); id != "" && id != d.ClusterID() {
		return d.SetCluster(id)
	}
	return nil
}

// enter records durably that the directory may have data of a cluster version. An older program must not
// open it.
func (d *Directory) enter(to uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if to <= max(d.ClusterVersion, 1) {
		return nil
	}
	next := d.Identity
	next.ClusterVersion = to
	if err := next.save(d.Path); err != nil {
		return err
	}
	d.ClusterVersion = to
	return nil
}

// lockDirectory locks a data directory against a second process.
func lockDirectory(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("data directory %s is in use by another process (%w); stop that first, or name another with --data", dir, err)
	}
	return file, nil
}

// identify reads the identity of the directory, or makes one for an empty directory. Other directories
// are refused.
func (d *Directory) identify(claim Claim) error {
	id, err := loadIdentity(d.Path)
	if err == nil {
		if err := id.checkVersion(d.Path, d.versions); err != nil {
			return err
		}
		d.Identity = *id
		return d.check(claim)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case CredentialsDir, SealKeyFile, SealKeyFile + ".tmp": // the host joined with a token
		case "machine-id": // of this host, which may have mounted before
		case "lost+found", lockFile, IdentityFile + ".tmp": // the node stopped before it saved its identity
		case votesFile, logDir, snapshotDir, reserveFile, AuditFile, AdminAuditFile, RefusalsAuditFile:
			return &DamagedError{
				Path: filepath.Join(d.Path, IdentityFile), Err: errors.New("it is missing, but other files of a node are there"),
			}
		default:
			return fmt.Errorf("data directory %s is not empty and not lockfs's (it has %q); name another one, see `lockfs server --help`",
				d.Path, entry.Name())
		}
	}
	if !claim.Bootstrap && !claim.Joins {
		return noCluster(d.Path)
	}
	d.Identity = newIdentity(claim.Name, claim.Address)
	if claim.Bootstrap {
		d.Cluster, d.Bootstrapping = NewClusterID(), true
	}
	return d.save(d.Path)
}

func (d *Directory) check(claim Claim) error {
	if d.Name != claim.Name {
		return fmt.Errorf("data directory %s belongs to node %q, not %q; use --name %s or another --data",
			d.Path, d.Name, claim.Name, d.Name)
	}
	switch {
	case !d.Joined && claim.Bootstrap && !d.Bootstrapping:
		return fmt.Errorf("data directory %s is of a server that was started to join a cluster: start that again, or use an empty directory", d.Path)
	case d.Bootstrapping && !claim.Bootstrap:
		return fmt.Errorf("data directory %s is incomplete: `lockfs server init` was interrupted; run it again with this --data and --name", d.Path)
	}
	if d.Address == claim.Address {
		return nil
	}
	if d.Joined && (d.Address == "" || claim.Address == "") {
		return fmt.Errorf("node %q was started with the address %q and cannot change to %q: a node with a network keeps one, "+
			"and one without has none", d.Name, d.Address, claim.Address)
	}
	d.Address = claim.Address
	return d.save(d.Path)
}
