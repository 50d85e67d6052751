package cluster

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockfs/cluster/atomicfile"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
)

// bootstrapCA is the first CA of a cluster until the state has it. Its key is encrypted on disk, as in
// the state.
type bootstrapCA struct {
	path      string
	authority *identity.Authority
}

const (
	certificateBlock = "CERTIFICATE"
	sealedKeyBlock   = "LOCKFS SEALED KEY"
)

// loadBootstrapCA returns nil if there is none.
func loadBootstrapCA(dir string, seal identity.SealKey) (*bootstrapCA, error) {
	path := filepath.Join(dir, consensus.BootstrapCAFile)
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
	authority, err := identity.Decrypt(certificates[0], sealed.Bytes, seal)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &bootstrapCA{path, authority}, nil
}

// newBootstrapCA creates a CA and saves it.
func newBootstrapCA(dir string, seal identity.SealKey, now time.Time) (*bootstrapCA, error) {
	authority, err := identity.NewAuthority(now)
	if err != nil {
		return nil, err
	}
	sealed, err := authority.Encrypt(seal)
	if err != nil {
		return nil, err
	}
	f := &bootstrapCA{filepath.Join(dir, consensus.BootstrapCAFile), authority}
	content := append(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: authority.Certificate().Raw}),
		pem.EncodeToMemory(&pem.Block{Type: sealedKeyBlock, Bytes: sealed})...)
	return f, atomicfile.Replace(f.path, content)
}

// identify makes the identity of the first server. It continues after an interruption.
func (b *bootstrapCA) identify(dir string, name identity.Name, address string, now time.Time, validity time.Duration) (*identity.Credentials, error) {
	return identifyWith(b.authority, dir, name, now, validity, identity.IssuedCert{
		Authorities: [][]byte{b.authority.Certificate().Raw}, Servers: []string{address},
	})
}

// identifyWith makes an identity with a CA of this process. grant lacks the leaf.
func identifyWith(
	authority *identity.Authority, dir string, name identity.Name, now time.Time, validity time.Duration, grant identity.IssuedCert,
) (*identity.Credentials, error) {
	key, err := identity.Stage(dir)
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
	if grant.Leaf, err = authority.Issue(request, now, validity); err != nil {
		return nil, err
	}
	return identity.Commit(dir, grant)
}

// discard is called once the state has the CA.
func (b *bootstrapCA) discard() error {
	if err := os.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(b.path))
}
