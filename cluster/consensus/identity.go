package consensus

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"lockfs/cluster/atomicfile"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// IdentityFile has the identity of a data directory's node. Its presence means that the directory belongs
// to a cluster.
const IdentityFile = "node.json"

const identityVersion = 2

// nodeName matches the characters of a host name.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// ValidName reports whether a name has 1 to 63 letters, digits, '.', '_' and '-', with a letter or digit
// at both ends.
func ValidName(name string) bool { return nodeName.MatchString(name) }

// Identity is the identity of a voter for as long as its disk lives. The id is drawn with the data
// directory. So a node with a wiped disk comes back under another id: raft must never meet a voter that
// has forgotten its votes.
type Identity struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
	// Cluster is the cluster's id; empty: not known yet.
	Cluster string `json:"cluster,omitempty"`
	// Joined is set once the node is known to be in the cluster's configuration.
	Joined bool `json:"joined"`
	// Starts are the instances of the processes of this directory, the present one last, up to MaxStarts.
	Starts []ids.Instance `json:"starts,omitempty"`
	// Bootstrapping is set from the first file of a new cluster until Joined is set: the next attempt
	// completes the rest.
	Bootstrapping bool `json:"bootstrapping,omitempty"`
	// ClusterVersion is the newest cluster version in the directory; 0: 1.
	ClusterVersion uint32 `json:"cluster_version,omitempty"`
}

// checkVersion returns codec.ErrNewer or codec.ErrOlder if a program with these cluster versions must not
// open the directory.
func (id *Identity) checkVersion(dir string, known version.Range) error {
	if err := namespace.CheckVersion(max(id.ClusterVersion, 1), known); err != nil {
		return fmt.Errorf("data directory %s, which stays as it is: %w", dir, err)
	}
	return nil
}

// loadIdentity returns fs.ErrNotExist for a new directory.
func loadIdentity(dir string) (*Identity, error) {
	path := filepath.Join(dir, IdentityFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var only struct{ Version int }
	if json.Unmarshal(data, &only) == nil && only.Version > identityVersion {
		return nil, fmt.Errorf("%s: version %d: %w", path, only.Version, codec.ErrNewer)
	}
	if only.Version == identityVersion-1 {
		return nil, fmt.Errorf("%s: version %d: %w", path, only.Version, codec.ErrOlder)
	}
	id := new(Identity)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(id); err != nil {
		return nil, &DamagedError{Path: path, Err: err}
	}
	if id.Version != identityVersion {
		return nil, &DamagedError{Path: path, Err: fmt.Errorf("it has version %d", id.Version)}
	}
	if id.ID == "" || !ValidName(id.Name) {
		return nil, &DamagedError{Path: path, Err: errors.New("id or name is missing")}
	}
	return id, nil
}

func newIdentity(name, address string) Identity {
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	return Identity{
		Version: identityVersion, ID: name + "-" + hex.EncodeToString(random), Name: name, Address: address,
	}
}

// save replaces the file atomically and durably.
func (id *Identity) save(dir string) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, IdentityFile), append(data, '\n'))
}

// NewClusterID draws the id of a cluster. A restored cluster gets a new one.
func NewClusterID() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return hex.EncodeToString(random[:])
}
