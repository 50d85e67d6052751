package identity

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hpke"
	"crypto/x509"
	"fmt"
)

// shareContext binds a share to its use, in addition to the CA.
const shareContext = "lockfs seal key\x00"

// ShareWith encrypts the seal key of a CA for the server with a certificate (HPKE, RFC 9180). So the cluster's state can hold it: neither a
// server removed earlier nor a reader of a backup can decrypt it.
func (k SealKey) ShareWith(certificate *x509.Certificate, authority Fingerprint) ([]byte, error) {
	public, ok := certificate.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, errNotP256
	}
	exchanged, err := public.ECDH()
	if err != nil {
		return nil, err
	}
	to, err := hpke.NewDHKEMPublicKey(exchanged)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(to, hpke.HKDFSHA256(), hpke.AES256GCM(), shareInfo(authority), k[:])
}

// OpenShare decrypts a share of [SealKey.ShareWith] for this key.
func (k *Key) OpenShare(share []byte, authority Fingerprint) (SealKey, error) {
	exchanged, err := k.private.ECDH()
	if err != nil {
		return SealKey{}, err
	}
	of, err := hpke.NewDHKEMPrivateKey(ecdh.KeyExchanger(exchanged))
	if err != nil {
		return SealKey{}, err
	}
	content, err := hpke.Open(of, hpke.HKDFSHA256(), hpke.AES256GCM(), shareInfo(authority), share)
	if err != nil {
		return SealKey{}, fmt.Errorf("the seal key of authority %s: %w", authority.Short(), err)
	}
	return SealKeyOf(content)
}

func shareInfo(authority Fingerprint) []byte { return append([]byte(shareContext), authority[:]...) }
