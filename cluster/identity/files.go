package identity

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"lockfs/cluster/atomicfile"
)

// The files of an identity directory. An interruption between two writes leaves a loadable identity: the
// leaf selects the key, and the key is written before it.
const (
	keyFile         = "host.key"
	nextKeyFile     = "next.key" // of an enrolment in progress
	leafFile        = "host.pem" // the leaf and its chain
	authoritiesFile = "authorities.pem"
	serversFile     = "servers" // an address in each line
)

var allFiles = []string{leafFile, keyFile, nextKeyFile, authoritiesFile, serversFile, rosterFile}

// makeDir creates a directory for the owner only, because others could hold its lock. It does not change
// a directory with other files, such as a home.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(entries, isNotOurs) {
			err = os.Chmod(dir, 0o700)
		} else if mode&0o077 != 0 {
			err = fmt.Errorf("%s has mode %04o and other things in it: an identity needs a directory of its own", dir, mode)
		}
		if err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

func isNotOurs(entry os.DirEntry) bool {
	return !slices.Contains(allFiles, strings.TrimSuffix(entry.Name(), ".tmp"))
}

// locked runs a function under the lock of a directory. Several mounts of a host may share the directory.
func locked(dir string, do func() error) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err == nil {
			return do()
		}
		if !errors.Is(err, syscall.EINTR) {
			return &fs.PathError{Op: "lock", Path: dir, Err: err}
		}
	}
}

// loadDir returns [ErrNone] for a missing directory, or one without a leaf.
func loadDir(dir string) (loaded *bundle, err error) {
	var damage error
	err = locked(dir, func() error {
		loaded, damage = readDir(dir)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", dir, ErrNone)
	}
	return loaded, errors.Join(err, damage)
}

func readDir(dir string) (*bundle, error) {
	certificates, err := readCertificates(filepath.Join(dir, leafFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	if err != nil {
		return nil, err
	}
	key, err := keyOfLeaf(dir, certificates[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	authorities, err := readCertificates(filepath.Join(dir, authoritiesFile))
	if err != nil {
		return nil, err
	}
	servers, err := readServers(dir)
	if err != nil {
		return nil, err
	}
	m, err := newBundle(certificates[0], certificates[1:], authorities, servers)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, leafFile), err)
	}
	if m.roster, err = readRoster(dir); err != nil {
		return nil, err
	}
	return m.with(key), nil
}

// keyOfLeaf returns the key of a leaf.
func keyOfLeaf(dir string, leaf *x509.Certificate) (*Key, error) {
	for _, name := range []string{keyFile, nextKeyFile} {
		key, err := readKey(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if key.isOf(leaf) {
			return key, nil
		}
	}
	return nil, fmt.Errorf("there is no key for the certificate of %q", leaf.DNSNames)
}

// promoteKey makes the next key the key if its leaf is there.
func promoteKey(dir string) error {
	certificates, err := readCertificates(filepath.Join(dir, leafFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	next := filepath.Join(dir, nextKeyFile)
	key, err := readKey(next)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !key.isOf(certificates[0]) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, keyFile)); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// writeSteps returns the writes of an identity. It takes effect with the leaf; until then the previous
// one does.
func writeSteps(dir string, m *bundle) []func() error {
	leaf := append([]*x509.Certificate{m.leaf}, m.chain...)
	return []func() error{
		func() error {
			return errors.Join(atomicfile.Replace(filepath.Join(dir, rosterFile), m.roster.lines()), writeServers(dir, m.servers))
		},
		func() error { return writeCertificates(filepath.Join(dir, authoritiesFile), m.authorities) },
		func() error { return writeCertificates(filepath.Join(dir, leafFile), leaf) },
		func() error { return promoteKey(dir) },
	}
}

func run(steps []func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// renewDir writes a renewal for the present key, and returns the identity in the directory: another
// process may have enrolled with a new key, which stays.
func renewDir(dir string, m *bundle) (*bundle, error) {
	err := locked(dir, func() error {
		there, err := readDir(dir)
		if err != nil {
			return err
		}
		if !there.key.isOf(m.leaf) {
			m = there
			return nil
		}
		return run(writeSteps(dir, m))
	})
	return m, err
}

func readKey(path string) (*Key, error) {
	content, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func readCertificates(path string) ([]*x509.Certificate, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	certificates, err := DecodeCertificates(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certificates, nil
}

func writeCertificates(path string, certificates []*x509.Certificate) error {
	return atomicfile.Replace(path, EncodeCertificates(certificates...))
}

func readServers(dir string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(dir, serversFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(content)), err
}

func writeServers(dir string, servers []string) error {
	var out bytes.Buffer
	for _, server := range servers {
		fmt.Fprintln(&out, server)
	}
	return atomicfile.Replace(filepath.Join(dir, serversFile), out.Bytes())
}

// ErrNone reports a directory without an identity: no enrolment was finished there.
var ErrNone = errors.New("this host belongs to no cluster yet: lockfs up TOKEN makes it one of a cluster")
