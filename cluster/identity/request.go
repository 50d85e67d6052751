package identity

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
)

// Request is a certificate signing request with a valid signature by its key.
type Request struct {
	Name    Name
	KeyHash KeyHash
	public  *ecdsa.PublicKey
}

// ParseRequest parses the result of [Key.Request]. It refuses a request not signed by its key, and keys other than ECDSA P-256.
func ParseRequest(der []byte) (*Request, error) {
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("a certificate signing request: %w", err)
	}
	if err := checkPublic(parsed.PublicKey); err != nil {
		return nil, fmt.Errorf("the key of a certificate signing request: %w", err)
	}
	if err := parsed.CheckSignature(); err != nil {
		return nil, fmt.Errorf("a certificate signing request is not signed by its key: %w", err)
	}
	name, err := nameOf(parsed.DNSNames)
	if err != nil {
		return nil, fmt.Errorf("a certificate signing request for %q: %w", parsed.DNSNames, err)
	}
	return &Request{
		Name:    name,
		KeyHash: sha256.Sum256(parsed.RawSubjectPublicKeyInfo),
		public:  parsed.PublicKey.(*ecdsa.PublicKey),
	}, nil
}
