package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

const (
	// Validity is how long a leaf is valid after its issue.
	Validity = 30 * 24 * time.Hour
	// backdate is how much earlier a leaf's validity begins.
	backdate = time.Hour
)

// A CA's certificate is valid at any time: wrong clocks must not matter, even on hosts which begin in 1970. A
// rotation ends it.
var (
	always  = time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)
	forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) // RFC 5280, section 4.1.2.5: no well-defined end
)

// Authority is a CA: it signs the certificates of a cluster's hosts.
type Authority struct {
	certificate *x509.Certificate
	private     *ecdsa.PrivateKey
}

// NewAuthority creates a key and its self-signed certificate. The time only goes into the name.
func NewAuthority(now time.Time) (*Authority, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial := newSerial()
	template := authorityTemplate(pkix.Name{
		CommonName:   "lockfs authority of " + now.UTC().Format(time.DateOnly),
		SerialNumber: fmt.Sprintf("%032x", serial),
	})
	template.SerialNumber = serial
	certificate, err := sign(template, template, &private.PublicKey, private)
	if err != nil {
		return nil, err
	}
	return &Authority{certificate: certificate, private: private}, nil
}

func authorityTemplate(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               subject,
		NotBefore:             always,
		NotAfter:              forever,
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
}

// newSerial is positive and has at most 20 bytes (RFC 5280, section 4.1.2.2).
func newSerial() *big.Int {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	random[0] |= 0x40
	return new(big.Int).SetBytes(random)
}

func sign(template, parent *x509.Certificate, public *ecdsa.PublicKey, private *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, private)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Certificate returns the CA's certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Fingerprint returns the fingerprint of the CA's certificate.
func (a *Authority) Fingerprint() Fingerprint { return FingerprintOf(a.certificate) }

// String identifies the CA, without its key.
func (a *Authority) String() string { return "authority " + a.Fingerprint().Short() }

// Issue signs a leaf (DER) for a request. It is valid from an hour before now; validity counts from now, and
// differs from [Validity] only in tests. The caller decides whether the host may have this name.
func (a *Authority) Issue(request *Request, now time.Time, validity time.Duration) ([]byte, error) {
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if request.Name.Role == Server {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	leaf, err := sign(&x509.Certificate{
		SerialNumber: newSerial(),
		Subject: pkix.Name{
			CommonName:         request.Name.Host,
			OrganizationalUnit: []string{a.Fingerprint().Short()},
		},
		DNSNames:              request.Name.dnsNames(),
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           usages,
		BasicConstraintsValid: true,
	}, a.certificate, request.public, a.private)
	if err != nil {
		return nil, err
	}
	return leaf.Raw, nil
}

// CrossSign signs the certificate of the next CA: hosts which trust this CA then also trust the next one.
func (a *Authority) CrossSign(newer *x509.Certificate) ([]byte, error) {
	public, ok := newer.PublicKey.(*ecdsa.PublicKey)
	if !ok || !newer.IsCA {
		return nil, fmt.Errorf("%q is no authority's certificate", newer.Subject)
	}
	template := authorityTemplate(newer.Subject)
	template.SubjectKeyId = newer.SubjectKeyId
	cross, err := sign(template, a.certificate, public, a.private)
	if err != nil {
		return nil, err
	}
	return cross.Raw, nil
}
