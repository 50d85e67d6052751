package cluster

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"lockfs/cluster/durable"
	"lockfs/raftstore/codec"
)

// identityFile says whose data directory it is. Its presence means that the directory belongs to a
// cluster.
const identityFile = "node.json"

const identityVersion = 1

// nodeName is what a --name may be: a host name's characters.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// identity is a voter for as long as its disk lives. The id is drawn when the data directory is made,
// so a node whose disk was wiped comes back as somebody else: raft must never meet a voter that has
// forgotten its votes.
type identity struct {
	Version     int    `json:"version"`
	ID          string `json:"id"`
	Name        string `json:"name"`
	RaftAddress string `json:"raft_address"`
	// Joined is set once the node is known to be in the cluster's configuration.
	Joined bool `json:"joined"`
}

// loadIdentity answers fs.ErrNotExist for a directory that no node has used yet.
func loadIdentity(dir string) (*identity, error) {
	path := filepath.Join(dir, identityFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var only struct{ Version int }
	if json.Unmarshal(data, &only) == nil && only.Version > identityVersion {
		return nil, fmt.Errorf("%s: version %d: %w", path, only.Version, codec.ErrNewer)
	}
	id := new(identity)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(id); err != nil {
		return nil, &DamagedError{Path: path, Err: err}
	}
	if id.Version != identityVersion {
		return nil, &DamagedError{Path: path, Err: fmt.Errorf("it has version %d", id.Version)}
	}
	if id.ID == "" || !nodeName.MatchString(id.Name) {
		return nil, &DamagedError{Path: path, Err: errors.New("id or name is missing")}
	}
	return id, nil
}

func newIdentity(name, raftAddress string) *identity {
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	return &identity{
		Version: identityVersion, ID: name + "-" + hex.EncodeToString(random), Name: name, RaftAddress: raftAddress,
	}
}

// save replaces the file as a whole, durably.
func (id *identity) save(dir string) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, identityFile), append(data, '\n'))
}

// identify answers the identity of a data directory, made now if the directory is new. A directory
// without an identity that is not empty is not lockfs's to use.
func identify(cfg *Config) (*identity, error) {
	id, err := loadIdentity(cfg.DataDir)
	if err == nil {
		return id, checkIdentity(id, cfg)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := os.ReadDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "lost+found", lockFile, identityFile + ".tmp": // a node that stopped before it saved its identity
		case votesFile, logDir, snapshotDir, auditFile:
			return nil, &DamagedError{
				Path: filepath.Join(cfg.DataDir, identityFile), Err: errors.New("it is missing, but other files of a node are there"),
			}
		default:
			return nil, fmt.Errorf("data directory %s is not empty and not lockfs's (it has %q); name another one",
				cfg.DataDir, entry.Name())
		}
	}
	id = newIdentity(cfg.Name, cfg.RaftAddress)
	return id, id.save(cfg.DataDir)
}

func checkIdentity(id *identity, cfg *Config) error {
	if id.Name != cfg.Name {
		return fmt.Errorf("data directory %s belongs to node %q, not %q; use --name %s or another --data",
			cfg.DataDir, id.Name, cfg.Name, id.Name)
	}
	if !id.Joined && !cfg.Bootstrap { // the cluster may have refused the address
		id.RaftAddress = cfg.RaftAddress
		return id.save(cfg.DataDir)
	}
	if id.RaftAddress != cfg.RaftAddress {
		return fmt.Errorf("node %q is known to its cluster by the raft address %s, which cannot change to %s; "+
			"keep it, or remove the member and join it with an empty data directory", id.Name, id.RaftAddress, cfg.RaftAddress)
	}
	return nil
}
