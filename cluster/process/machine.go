package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// MachineID answers what this machine is known by, whatever its name and however often it starts: 32 hexadecimal
// digits, of a hash of its id, which machine-id(5) wants to be confidential. It is an error if the machine has no id
// yet, or none at all. Machines that were copied with their disks have the same one.
func MachineID() (string, error) { return machineID("/etc/machine-id") }

func machineID(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	id := bytes.TrimSpace(content)
	if raw, err := hex.DecodeString(string(id)); err != nil || len(raw) != 16 { // also "uninitialized"
		return "", fmt.Errorf("%s: not 32 hexadecimal digits", path)
	}
	sum := sha256.Sum256(append([]byte("lockfs:"), id...))
	return hex.EncodeToString(sum[:])[:32], nil
}
