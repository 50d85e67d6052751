package mountpoints

import (
	"errors"
	"fmt"
	"os"

	"lockfs/fusefs/mountpoint"
)

// Protect prevents programs from creating files in the bare directory of a mount point, which it creates if
// necessary, and records the protection. See [mountpoint.Protect].
func Protect(dir string) (bare *mountpoint.Bare, changed bool, err error) {
	mounted, err := mountpoint.IsMounted(dir)
	if err != nil {
		return nil, false, err
	}
	if !mounted { // a mount of lockfs may hang
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, false, fmt.Errorf("mount point: %w", err)
		}
	}
	bare, err = mountpoint.Examine(dir)
	if err != nil || bare.Protection != mountpoint.Unprotected {
		return bare, false, err
	}
	// The record comes first, because only recorded protection is undone.
	if err := changeRecord(recordFile, bare.Path, func(e *entry) { e.protected = true }); err != nil {
		return bare, false, fmt.Errorf("record the mount point: %w", err)
	}
	bare, changed, err = mountpoint.Protect(dir)
	if err != nil {
		err = errors.Join(err, changeRecord(recordFile, bare.Path, func(e *entry) { e.protected = false }))
	}
	return bare, changed, err
}

// Unprotect undoes the recorded protection of a mount point. An administrator's protection stays.
func Unprotect(dir string) (changed bool, err error) {
	if dir, err = mountpoint.Resolve(dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	entries, err := readRecord(recordFile)
	for _, e := range entries {
		if e.dir != dir || !e.protected {
			continue
		}
		if changed, err = mountpoint.Unprotect(dir); err == nil {
			err = changeRecord(recordFile, dir, func(e *entry) { e.protected = false })
		}
	}
	return changed, err
}

// UnprotectAll undoes all recorded protection.
func UnprotectAll() error {
	entries, err := readRecord(recordFile)
	for _, e := range entries {
		if e.protected {
			_, failed := Unprotect(e.dir)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// SetUp records the mount point of lockfs up for users without access to its settings.
func SetUp(dir string) error {
	return changeRecord(recordFile, dir, func(e *entry) { e.up = true })
}

// TakeDown removes the mount point of lockfs up from the record.
func TakeDown(dir string) error {
	if resolved, err := mountpoint.Resolve(dir); err == nil {
		dir = resolved
	}
	return changeRecord(recordFile, dir, func(e *entry) { e.up = false })
}

// Describe describes the protection of a bare directory.
func Describe(bare *mountpoint.Bare) string {
	switch bare.Protection {
	case mountpoint.Immutable:
		return "the directory below the mount is immutable"
	case mountpoint.Covered:
		return "a read-only tmpfs covers the directory below the mount"
	case mountpoint.ReadOnly:
		return "the file system below the mount is read-only"
	case mountpoint.Automounted:
		return "an automount is below the mount"
	}
	return "programs can create files in the directory below the mount"
}
