package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
)

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

// KeyHash is the SHA-256 of a public key (its SubjectPublicKeyInfo). It stands for the key in the cluster's state.
type KeyHash [sha256.Size]byte

// KeyHashOf returns the hash of a certificate's key.
func KeyHashOf(certificate *x509.Certificate) KeyHash {
	return sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
}

// String returns all hexadecimal digits.
func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }
