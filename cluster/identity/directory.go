package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"lockfs/cluster/durable"
)

// Load reads the identity in a directory. [ErrNone] if there is none; an [*ExposedError] if others can read its key.
func Load(dir string) (*Credentials, error) {
	loaded, err := loadDir(dir)
	if err != nil {
		return nil, err
	}
	c := &Credentials{dir: dir}
	c.current.Store(loaded)
	return c, nil
}

// Stage is the key to enrol with: a new one, or that of an enrolment which was cut short, so that it can be asked for again. It is on
// disk when Prepare returns, and takes the place of the key that is in use only when [Commit] has its leaf. The
// directory is made if it is not there, and for its owner only; it is an error if it has other things in it and others may enter it.
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
		return durable.Replace(path, content)
	})
	return key, err
}

// Rollback gives up an enrolment that was cut short, so that [Stage] draws another key: a cluster that has revoked the key never takes
// it again. The identity that is in use stays.
func Rollback(dir string) error {
	err := locked(dir, func() error {
		if err := promoteKey(dir); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(dir, nextKeyFile)); err != nil {
			return err
		}
		return durable.SyncDir(dir)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Commit keeps what the cluster granted for the key that [Stage] gave, in place of the identity that was there. To do it twice does
// no harm.
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

// Remove deletes an identity and its directory. Cut short, it leaves what is no identity any more. No error if there is none.
func Remove(dir string) error {
	err := locked(dir, func() error {
		for _, name := range allFiles {
			for _, path := range []string{name, name + ".tmp"} {
				if err := os.Remove(filepath.Join(dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		return durable.SyncDir(dir)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(dir)
}
