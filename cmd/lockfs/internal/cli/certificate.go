package cli

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
)

// LeafFile is what an identity directory has its host's certificate in, first of its chain.
const LeafFile = "host.pem"

// ReadLeaf reads the first certificate of a PEM file, and checks nothing of it.
func ReadLeaf(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("there is no certificate in it")
}

// DefaultIdentity is the directory of this user's identity on a host that is no server.
func DefaultIdentity() string {
	if os.Geteuid() == 0 {
		return "/etc/lockfs/identity"
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "lockfs", "identity")
}
