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

// What a data directory holds besides IdentityFile.
const (
	lockFile    = "lock"        // locked (flock) while a node runs
	votesFile   = "votes.db"    // raft-boltdb: term and vote
	logDir      = "log"         // raft-wal: the log
	snapshotDir = "snapshots"   // raft's file snapshot store
	reserveFile = "reserve"     // nothing: space for when the disk is full
	AuditFile   = "audit.jsonl" // the audit trail, with what is rotated beside it

	// Copies of the events that lock events are not to push out, with what is rotated beside them.
	AdminAuditFile    = "audit-admin.jsonl"
	RefusalsAuditFile = "audit-refusals.jsonl"

	// What a node may have of a secure cluster before it has raft's files.
	CredentialsDir  = "identity"     // key and certificate
	SealKeyFile     = "ca.key"       // what the authority's key is sealed with
	BootstrapCAFile = "founding.pem" // the authority of a cluster that begins, until the state has it
)

// Directory is the data directory of a node. No other process uses it while it is open.
type Directory struct {
	Path     string
	Identity // once the node runs, Cluster and Joined are for the methods

	lock     *os.File
	versions version.Range // of a cluster, that the program knows
	mu       sync.Mutex    // of changes of the identity
}

// Claim says for whom a data directory is opened.
type Claim struct {
	Name      string // of the node
	Address   string // by which the other voters know it; empty: it is alone
	Bootstrap bool   // the node is to bootstrap a cluster; ignored once the directory belongs to one
	Joins     bool   // the node is to join a cluster; likewise
	// Versions are those of a cluster that the program knows; none: this program's.
	Versions version.Range
}

func (c *Claim) versions() version.Range {
	if c.Versions == (version.Range{}) {
		return version.Own()
	}
	return c.Versions
}

// OpenDirectory opens a data directory, which is made if there is none. It is an error if it is another node's, in use, or not
// lockfs's; a [DamagedError] if parts of it are missing; codec.ErrNewer or codec.ErrOlder, before anything is written, if the cluster
// runs at a version that the program does not know.
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
		return nil, errors.Join(&NoClusterError{path, "is incomplete: `lockfs restore` was interrupted; run it again with this --data"}, d.Close())
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

// noCluster is the error for a directory without a cluster where none is to be made: a server that has lost its disk must not bootstrap a
// second cluster beside the one that it belonged to.
func noCluster(path string) error {
	return &NoClusterError{path, "belongs to no cluster: to join one, give --token (--join if it has no certificates); to go on from a backup, " +
		"use `lockfs restore`; only to make a new cluster, run `lockfs server init` once"}
}

// HasIdentity reports whether a directory is some node's.
func HasIdentity(path string) bool {
	_, err := os.Stat(filepath.Join(path, IdentityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// IsBootstrapping reports whether a directory has a part of a new cluster's first node, and the rest is yet to be made ([Directory.Bootstrap]).
func IsBootstrapping(path string) bool {
	id, err := loadIdentity(path)
	return err == nil && id.Bootstrapping
}

// RequireCluster returns an error unless the node is in a cluster, or is to join one.
func (d *Directory) RequireCluster(joins bool) error {
	if d.HasJoined() || joins {
		return nil
	}
	return noCluster(d.Path)
}

// Close lets another process use the directory.
func (d *Directory) Close() error { return d.lock.Close() }

// SetJoined notes that the node is in the cluster's configuration.
func (d *Directory) SetJoined() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Joined, d.Bootstrapping = true, false
	return d.save(d.Path)
}

// HasJoined tells whether the node was ever in the cluster's configuration, as far as it knows.
func (d *Directory) HasJoined() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Joined
}

// ClusterID is the id of the cluster that the node belongs to; empty: it does not know that yet.
func (d *Directory) ClusterID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Cluster
}

// SetCluster notes to which cluster the node belongs.
func (d *Directory) SetCluster(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Cluster = id
	return d.save(d.Path)
}

// followState takes the id of the cluster from the state: who was cut off when it went on as another one is done with that now.
func (d *Directory) followState(state *namespace.Namespace) error {
	if id := state.Cluster(); id != "" && id != d.ClusterID() {
		return d.SetCluster(id)
	}
	return nil
}

// enter notes durably that the rest of the directory may hold something of a version of the cluster: a program that does not know
// it is not to open that.
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

// lockDirectory keeps a second process away from a data directory.
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

// identify reads the identity of the directory, or makes one if it is new. A directory without an identity that is not empty is
// not lockfs's to use.
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
		case CredentialsDir, SealKeyFile, SealKeyFile + ".tmp": // it has come in with a token
		case "machine-id": // of this host, which may have mounted before it has a server
		case "lost+found", lockFile, IdentityFile + ".tmp": // a node that stopped before it saved its identity
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
