package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
)

// Fingerprint is the SHA-256 of an authority's certificate.
type Fingerprint [sha256.Size]byte

// FingerprintOf is the fingerprint of a certificate.
func FingerprintOf(certificate *x509.Certificate) Fingerprint {
	return sha256.Sum256(certificate.Raw)
}

// String is all of it, hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Short is the first 16 digits, for people to compare.
func (f Fingerprint) Short() string { return hex.EncodeToString(f[:8]) }

// KeyHash is the SHA-256 of a public key (its SubjectPublicKeyInfo). It stands for the key in the cluster's state.
type KeyHash [sha256.Size]byte

// KeyHashOf is the hash of the key that a certificate is for.
func KeyHashOf(certificate *x509.Certificate) KeyHash {
	return sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
}

// String is all of it, hexadecimal.
func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }
