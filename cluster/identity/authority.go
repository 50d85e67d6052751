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
	// Validity is how long a leaf is valid, from when it is issued.
	Validity = 30 * 24 * time.Hour
	// backdate is by how much a leaf begins before it was issued.
	backdate = time.Hour
)

// An authority's certificate is as good at any time: clocks that are wrong must not matter, those of hosts that begin in 1970 either, and
// what ends it is rotation.
var (
	always  = time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)
	forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) // RFC 5280, section 4.1.2.5: no well-defined end
)

// Authority signs the certificates of a cluster's hosts.
type Authority struct {
	certificate *x509.Certificate
	private     *ecdsa.PrivateKey
}

// NewAuthority draws a key and signs a certificate for it with itself. The time only goes into its name.
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

// newSerial is positive and of at most 20 bytes (RFC 5280, section 4.1.2.2).
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

// Certificate is what others trust.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Fingerprint is that of its certificate.
func (a *Authority) Fingerprint() Fingerprint { return FingerprintOf(a.certificate) }

// String says which authority it is, and nothing of its key.
func (a *Authority) String() string { return "authority " + a.Fingerprint().Short() }

// Issue signs a leaf (DER) for who asks. It is valid from an hour before now; validity counts from now, and is [Validity] but in tests.
// Whether that name may be his is for the caller to know.
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

// CrossSign signs the certificate of the authority that comes after this one, so that whoever trusts this one trusts that too.
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
