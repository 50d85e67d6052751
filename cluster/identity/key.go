package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

const keyBlock = "PRIVATE KEY"

// Key is the private key of a host.
type Key struct {
	private *ecdsa.PrivateKey
	public  []byte // SubjectPublicKeyInfo
}

// NewKey creates a random key.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return keyOf(private)
}

func keyOf(private *ecdsa.PrivateKey) (*Key, error) {
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	return &Key{private: private, public: public}, nil
}

// String identifies the key without revealing it.
func (k *Key) String() string { return "key " + k.Hash().String()[:16] }

// Hash returns the hash of the public key.
func (k *Key) Hash() KeyHash { return sha256.Sum256(k.public) }

// isOf reports whether a certificate is for this key.
func (k *Key) isOf(certificate *x509.Certificate) bool {
	return slices.Equal(k.public, certificate.RawSubjectPublicKeyInfo)
}

// Request returns a certificate signing request (PKCS #10, DER) for a name, signed with the key.
func (k *Key) Request(name Name) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: name.dnsNames()}, k.private)
}

func (k *Key) pem() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

func parseKey(content []byte) (*Key, error) {
	block, rest := pem.Decode(content)
	if block == nil || block.Type != keyBlock || len(rest) > 0 {
		return nil, errors.New("it is no private key")
	}
	private, err := parsePrivate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return keyOf(private)
}

// parsePrivate parses PKCS #8.
func parsePrivate(der []byte) (*ecdsa.PrivateKey, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errNotP256
	}
	return private, checkPublic(private.Public())
}

var errNotP256 = errors.New("it is no ECDSA key of the curve P-256")

func checkPublic(public any) error {
	key, ok := public.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return errNotP256
	}
	return nil
}

// Request is a certificate signing request with a valid signature by its key.
type Request struct {
	Name    Name
	KeyHash KeyHash
	public  *ecdsa.PublicKey
}

// ParseRequest parses the result of [Key.Request]. It refuses a request not signed by its key, and keys
// other than ECDSA P-256.
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

// Fingerprint is the SHA-256 of a CA's certificate.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of a certificate.
func FingerprintOf(certificate *x509.Certificate) Fingerprint {
	return sha256.Sum256(certificate.Raw)
}

// String returns all hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Short returns the first 16 digits, for people to compare.
func (f Fingerprint) Short() string { return hex.EncodeToString(f[:8]) }

// KeyHash is the SHA-256 of a public key (its SubjectPublicKeyInfo). It stands for the key in the
// cluster's state.
type KeyHash [sha256.Size]byte

// KeyHashOf returns the hash of a certificate's key.
func KeyHashOf(certificate *x509.Certificate) KeyHash {
	return sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
}

// String returns all hexadecimal digits.
func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }
