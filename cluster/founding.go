package cluster

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockfs/cluster/consensus"
	"lockfs/cluster/durable"
	"lockfs/cluster/identity"
)

// founding is the authority that a cluster begins with, until the state has it. Its key is on disk sealed, as it is in the state.
type founding struct {
	path      string
	authority *identity.Authority
}

const (
	certificateBlock = "CERTIFICATE"
	sealedKeyBlock   = "LOCKFS SEALED KEY"
)

// loadFounding answers nil if there is none under way.
func loadFounding(dir string, seal identity.SealKey) (*founding, error) {
	path := filepath.Join(dir, consensus.FoundingFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	certificate, rest := pem.Decode(content)
	sealed, _ := pem.Decode(rest)
	if certificate == nil || sealed == nil || sealed.Type != sealedKeyBlock {
		return nil, &consensus.DamagedError{Path: path, Err: errors.New("it holds no authority")}
	}
	certificates, err := identity.DecodeCertificates(pem.EncodeToMemory(certificate))
	if err != nil {
		return nil, &consensus.DamagedError{Path: path, Err: err}
	}
	authority, err := identity.Unseal(certificates[0], sealed.Bytes, seal)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &founding{path, authority}, nil
}

// beginFounding draws an authority and keeps it.
func beginFounding(dir string, seal identity.SealKey, now time.Time) (*founding, error) {
	authority, err := identity.NewAuthority(now)
	if err != nil {
		return nil, err
	}
	sealed, err := authority.Seal(seal)
	if err != nil {
		return nil, err
	}
	f := &founding{filepath.Join(dir, consensus.FoundingFile), authority}
	content := append(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: authority.Certificate().Raw}),
		pem.EncodeToMemory(&pem.Block{Type: sealedKeyBlock, Bytes: sealed})...)
	return f, durable.Replace(f.path, content)
}

// identify makes the identity of the first server. A node that was cut off in the middle goes on where it was.
func (f *founding) identify(dir string, name identity.Name, address string, now time.Time, validity time.Duration) (*identity.Credentials, error) {
	key, err := identity.Prepare(dir)
	if err != nil {
		return nil, err
	}
	der, err := key.Request(name)
	if err != nil {
		return nil, err
	}
	request, err := identity.ParseRequest(der)
	if err != nil {
		return nil, err
	}
	leaf, err := f.authority.Issue(request, now, validity)
	if err != nil {
		return nil, err
	}
	return identity.Install(dir, identity.Grant{
		Leaf: leaf, Authorities: [][]byte{f.authority.Certificate().Raw}, Servers: []string{address},
	})
}

// over is called once the state has the authority.
func (f *founding) over() error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDir(filepath.Dir(f.path))
}
