package identity

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hpke"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"lockfs/cluster/atomicfile"
)

const sealKeyBlock = "LOCKFS SEAL KEY"

// SealKey encrypts the CA's key in the cluster's state: an AES-256 key which each server stores beside its
// data.
type SealKey [32]byte

// NewSealKey creates a random key.
func NewSealKey() SealKey {
	var key SealKey
	_, _ = rand.Read(key[:]) // never fails (crypto/rand)
	return key
}

// SealKeyOf decodes a key which a server received at its join.
func SealKeyOf(content []byte) (SealKey, error) {
	var key SealKey
	if len(content) != len(key) {
		return SealKey{}, fmt.Errorf("a seal key has %d bytes, not %d", len(key), len(content))
	}
	copy(key[:], content)
	return key, nil
}

// String hides the key.
func (SealKey) String() string { return "(seal key)" }

// GoString hides the key.
func (SealKey) GoString() string { return "(seal key)" }

// LoadSealKey reads a file of Save. It refuses a file readable by others, with an [*ExposedError]. Without a
// file the error is fs.ErrNotExist.
func LoadSealKey(path string) (SealKey, error) {
	content, err := readSecret(path)
	if err != nil {
		return SealKey{}, err
	}
	block, rest := pem.Decode(content)
	if block == nil || block.Type != sealKeyBlock || len(rest) > 0 {
		return SealKey{}, fmt.Errorf("%s: it is no seal key", path)
	}
	key, err := SealKeyOf(block.Bytes)
	if err != nil {
		return SealKey{}, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// Save writes the key durably to a file for its owner only.
func (k SealKey) Save(path string) error {
	return atomicfile.Replace(path, pem.EncodeToMemory(&pem.Block{Type: sealKeyBlock, Bytes: k[:]}))
}

// ExposedError reports a key file readable by others. Its content was not used.
type ExposedError struct {
	Path string
	Mode fs.FileMode
}

// Error returns the problem and the remedy.
func (e *ExposedError) Error() string {
	return fmt.Sprintf("%s has mode %04o, so other users can read the key in it: run chmod 600 %s, and replace the key if it may be known", e.Path, e.Mode, e.Path)
}

func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, &ExposedError{Path: path, Mode: mode}
	}
	return os.ReadFile(path)
}

// ErrWrongSealKey means: a sealed key cannot be decrypted. The seal key or the certificate is another one, or
// the data is damaged.
var ErrWrongSealKey = errors.New("the key of the authority does not open with this seal key")

func (k SealKey) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Encrypt returns the CA's key for the state, bound to its certificate. Each result is different.
func (a *Authority) Encrypt(key SealKey) ([]byte, error) {
	private, err := x509.MarshalPKCS8PrivateKey(a.private)
	if err != nil {
		return nil, err
	}
	aead, err := key.cipher()
	if err != nil {
		return nil, err
	}
	fingerprint := a.Fingerprint()
	return aead.Seal(nil, nil, private, fingerprint[:]), nil
}

// Decrypt inverts Encrypt for the CA with this certificate. The error is [ErrWrongSealKey] for another key.
func Decrypt(certificate *x509.Certificate, sealed []byte, key SealKey) (*Authority, error) {
	aead, err := key.cipher()
	if err != nil {
		return nil, err
	}
	fingerprint := FingerprintOf(certificate)
	der, err := aead.Open(nil, nil, sealed, fingerprint[:])
	if err != nil {
		return nil, ErrWrongSealKey
	}
	private, err := parsePrivate(der)
	if err != nil {
		return nil, fmt.Errorf("the key of the authority: %w", err)
	}
	return &Authority{certificate: certificate, private: private}, nil
}

// shareContext binds a share to its use, in addition to the CA.
const shareContext = "lockfs seal key\x00"

// ShareWith encrypts the seal key of a CA for the server with a certificate (HPKE, RFC 9180). So the
// cluster's state can hold it: neither a server removed earlier nor a reader of a backup can decrypt it.
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
