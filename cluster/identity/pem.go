package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const certificateBlock = "CERTIFICATE"

// EncodeCertificates returns certificates as PEM.
func EncodeCertificates(certificates ...*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, certificate := range certificates {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw}))
	}
	return out.Bytes()
}

// DecodeCertificates decodes the result of EncodeCertificates: at least one certificate, and nothing else.
func DecodeCertificates(content []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for len(bytes.TrimSpace(content)) > 0 {
		block, rest := pem.Decode(content)
		if block == nil || block.Type != certificateBlock {
			return nil, errors.New("there is something that is no certificate")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates, content = append(certificates, certificate), rest
	}
	if len(certificates) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return certificates, nil
}

// parseCertificates parses DER certificates of a message.
func parseCertificates(what string, ders [][]byte) ([]*x509.Certificate, error) {
	certificates := make([]*x509.Certificate, 0, len(ders))
	for _, der := range ders {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}
