package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
)

// Nonce makes a proof fresh: it is in the reply to one request only.
type Nonce [32]byte

// NewNonce creates a random nonce.
func NewNonce() (nonce Nonce) {
	_, _ = rand.Read(nonce[:]) // never fails (crypto/rand)
	return nonce
}

// proofContext distinguishes the signature of a proof from that of a certificate, which begins with
// another byte.
const proofContext = "lockfs proof of a server\x00"

func proofDigest(nonce Nonce, server KeyHash) []byte {
	digest := sha256.New()
	digest.Write([]byte(proofContext))
	digest.Write(nonce[:])
	digest.Write(server[:])
	return digest.Sum(nil)
}

// Proof shows that a leader knew a key as a server's, after a host had created a nonce.
type Proof struct {
	Signature []byte
	Signer    [][]byte // certificates of the signing CA: its own first, then cross certificates; DER
}

// Prove signs that a key is a server's now. The caller is the leader, confirmed by a majority.
func (a *Authority) Prove(nonce Nonce, server KeyHash) ([]byte, error) {
	return ecdsa.SignASN1(rand.Reader, a.private, proofDigest(nonce, server))
}

// Check returns an error unless the proof is signed by the trusted CA, or by a CA for which it vouches. An
// older CA does not count. Otherwise it returns the certificate of the signing CA, the newest one known then.
func (p *Proof) Check(trusted *x509.Certificate, nonce Nonce, server KeyHash) (newest *x509.Certificate, err error) {
	signer, err := parseCertificates("the signer of a proof", p.Signer)
	if err != nil {
		return nil, err
	}
	digest := proofDigest(nonce, server)
	err = errors.New("it does not name the authority that has signed it")
	for _, certificate := range signer[:min(len(signer), maxExtra)] {
		public, ok := certificate.PublicKey.(*ecdsa.PublicKey)
		if !ok || checkPublic(public) != nil || !ecdsa.VerifyASN1(public, digest, p.Signature) {
			continue
		}
		if err = vouchesFor(trusted, certificate, signer); err == nil {
			return certificate, nil
		}
	}
	return nil, err
}

// vouchesFor returns nil if a certificate belongs to a trusted CA, or is signed by it, directly or through
// others.
func vouchesFor(trusted, certificate *x509.Certificate, others []*x509.Certificate) error {
	if bytes.Equal(certificate.RawSubjectPublicKeyInfo, trusted.RawSubjectPublicKeyInfo) {
		return nil
	}
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: certificate.NotBefore,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	options.Roots.AddCert(trusted)
	for _, other := range others {
		options.Intermediates.AddCert(other)
	}
	if _, err := certificate.Verify(options); err != nil || !certificate.IsCA {
		return fmt.Errorf("the authority that has signed it is not %s, nor a later one", FingerprintOf(trusted).Short())
	}
	return nil
}
