package session

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockfs/cluster/atomicfile"
	"lockfs/cluster/process"
)

// machineID distinguishes machines with the same name. If the system has no id, the mounts store one where it
// survives a boot. Without any id it is empty, and equal on all such machines.
func machineID(cfg Config) string {
	id, err := process.MachineID()
	if err == nil {
		return id
	}
	for _, path := range cfg.MachineFiles {
		if id, err := readMachineID(path); err == nil {
			return id
		}
	}
	for _, path := range cfg.MachineFiles {
		if id, err = makeMachineID(path); err == nil {
			return id
		}
	}
	cfg.Logger.Warn("this machine has no id: locks of another machine with its name count as its own", "error", err)
	return ""
}

// makeMachineID stores a new id. Of several concurrent mounts, the first to link its file wins.
func makeMachineID(path string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	mine, err := os.CreateTemp(filepath.Dir(path), ".machine-id-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(mine.Name()) }()
	_, err = mine.WriteString(hex.EncodeToString(random[:]) + "\n")
	if err = errors.Join(err, mine.Chmod(0o644), mine.Sync(), mine.Close()); err != nil {
		return "", err
	}
	if err := os.Link(mine.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return "", err
	}
	return readMachineID(path)
}

func readMachineID(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(content))
	if _, err := hex.DecodeString(id); err != nil || len(id) != 32 {
		return "", &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not an id of 32 hexadecimal digits")}
	}
	return id, nil
}
