package cli

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
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
