package identity

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hpke"
	"crypto/x509"
	"fmt"
)

// shareContext binds a share to its use, besides the authority.
const shareContext = "lockfs seal key\x00"

// ShareWith encrypts the seal key of an authority to the server with a certificate (HPKE, RFC 9180). So the cluster's state can hold it: a server
// that was removed before cannot read it, and neither can a reader of a backup.
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

// OpenShare decrypts a share that [SealKey.ShareWith] has made for this key.
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
