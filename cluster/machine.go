package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockfs/cluster/durable"
	"lockfs/cluster/process"
)

// machineID tells machines apart that have the same name. Where the system has no id, the mounts keep one beside their
// session files; without any it is empty, which is the same machine as every other such one.
func machineID(cfg ClientConfig) string {
	id, err := process.MachineID()
	if err == nil {
		return id
	}
	if cfg.SessionFile == "" {
		return ""
	}
	path := filepath.Join(filepath.Dir(cfg.SessionFile), "machine-id")
	if id, err = keptMachineID(path); err != nil {
		cfg.Logger.Warn("this machine has no id: locks of another one with its name are taken for its own", "error", err)
		return ""
	}
	return id
}

// keptMachineID reads an id, or makes one: of several mounts that do so at once, the first to link its file wins.
func keptMachineID(path string) (string, error) {
	if id, err := readMachineID(path); !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	mine, err := os.CreateTemp(filepath.Dir(path), ".machine-id-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(mine.Name()) }()
	_, err = mine.WriteString(hex.EncodeToString(random[:]) + "\n")
	if err = errors.Join(err, mine.Sync(), mine.Close()); err != nil {
		return "", err
	}
	if err := os.Link(mine.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
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
