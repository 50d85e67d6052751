package identity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/fuzzing"
)

// FuzzCertificates reads anything as certificates. What is taken is written, and read as the same.
func FuzzCertificates(f *testing.F) {
	authority, err := NewAuthority(time.Now())
	require.NoError(f, err)
	one := EncodeCertificates(authority.Certificate())
	f.Add(one)
	f.Add(append(append([]byte(nil), one...), one...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		certificates, err := DecodeCertificates(content)
		if err != nil {
			return
		}
		require.NotEmpty(t, certificates)
		again, err := DecodeCertificates(EncodeCertificates(certificates...))
		require.NoError(t, err)
		require.Len(t, again, len(certificates))
		for i := range again {
			require.True(t, certificates[i].Equal(again[i]))
		}
	})
}

// FuzzKey reads anything as a private key. What is taken is one, and is written and read as the same.
func FuzzKey(f *testing.F) {
	key, err := NewKey()
	require.NoError(f, err)
	content, err := key.pem()
	require.NoError(f, err)
	f.Add(content)
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		key, err := parseKey(content)
		if err != nil {
			return
		}
		written, err := key.pem()
		require.NoError(t, err)
		again, err := parseKey(written)
		require.NoError(t, err)
		require.Equal(t, key.Hash(), again.Hash())
	})
}
