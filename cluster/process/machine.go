package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// MachineID returns 32 hexadecimal digits which identify this machine across renames and boots. It is a hash
// of the machine-id(5), which has to stay confidential. It returns an error if the machine has no id. Copies
// of a machine's disk have the same id.
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
