package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"lockfs/cluster/atomicfile"
)

// Load reads the identity in a directory. The error is [ErrNone] without one, and an [*ExposedError] if
// others can read its key.
func Load(dir string) (*Credentials, error) {
	loaded, err := loadDir(dir)
	if err != nil {
		return nil, err
	}
	c := &Credentials{dir: dir}
	c.current.Store(loaded)
	return c, nil
}

// Stage returns the key for an enrolment: a new one, or the key of an interrupted enrolment. The key is on
// disk when Stage returns, and replaces the one in use only at [Commit]. Stage creates the directory for its
// owner only. It returns an error if the directory has other files and other users may enter it.
func Stage(dir string) (*Key, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	var key *Key
	err := locked(dir, func() error {
		if err := promoteKey(dir); err != nil {
			return err
		}
		path := filepath.Join(dir, nextKeyFile)
		var err error
		if key, err = readKey(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if key, err = NewKey(); err != nil {
			return err
		}
		content, err := key.pem()
		if err != nil {
			return err
		}
		return atomicfile.Replace(path, content)
	})
	return key, err
}

// Rollback abandons an interrupted enrolment, so [Stage] creates another key: a revoked key is never accepted
// again. The identity in use stays.
func Rollback(dir string) error {
	err := locked(dir, func() error {
		if err := promoteKey(dir); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(dir, nextKeyFile)); err != nil {
			return err
		}
		return atomicfile.SyncDir(dir)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Commit replaces the identity by a certificate for the key of [Stage]. It may be repeated.
func Commit(dir string, grant IssuedCert) (*Credentials, error) {
	c := &Credentials{dir: dir}
	err := locked(dir, func() error {
		granted, err := parseIssuedCert(grant)
		if err != nil {
			return err
		}
		key, err := keyOfLeaf(dir, granted.leaf)
		if err != nil {
			return err
		}
		granted = granted.with(key)
		c.current.Store(granted)
		return run(writeSteps(dir, granted))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return c, nil
}

// Remove deletes an identity and its directory. An interrupted Remove leaves no usable identity. Without
// one it returns nil.
func Remove(dir string) error {
	err := locked(dir, func() error {
		for _, name := range allFiles {
			for _, path := range []string{name, name + ".tmp"} {
				if err := os.Remove(filepath.Join(dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		return atomicfile.SyncDir(dir)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(dir)
}
