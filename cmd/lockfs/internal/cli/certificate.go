package cli

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
)

// LeafFile is the file in an identity directory with the certificate chain of the host, its own first.
const LeafFile = "host.pem"

// ReadLeaf reads the first certificate of a PEM file without verifying it.
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
	return nil, errors.New("the file has no certificate")
}

// DefaultIdentity returns the identity directory of this user on a host without a server.
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
