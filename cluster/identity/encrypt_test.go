package identity

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEncryptAuthorityKey(t *testing.T) {
	authority, other, key := newAuthority(t), newAuthority(t), NewSealKey()
	sealed, err := authority.Encrypt(key)
	require.NoError(t, err)
	again, err := authority.Encrypt(key)
	require.NoError(t, err)
	require.NotEqual(t, sealed, again, "a nonce is used once")

	opened, err := Decrypt(authority.Certificate(), sealed, key)
	require.NoError(t, err)
	leaf := parsed(t, issue(t, opened, newKey(t), Name{Server, "a"}, now))
	require.NoError(t, leaf.CheckSignatureFrom(authority.Certificate()))

	_, err = Decrypt(authority.Certificate(), sealed, NewSealKey())
	require.ErrorIs(t, err, ErrWrongSealKey, "another seal key")
	_, err = Decrypt(other.Certificate(), sealed, key)
	require.ErrorIs(t, err, ErrWrongSealKey, "another authority's certificate")
	_, err = Decrypt(authority.Certificate(), nil, key)
	require.ErrorIs(t, err, ErrWrongSealKey)
	for at := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[at] ^= 0x80
		_, err := Decrypt(authority.Certificate(), damaged, key)
		require.ErrorIs(t, err, ErrWrongSealKey, "byte %d", at)
		_, err = Decrypt(authority.Certificate(), sealed[:at], key)
		require.ErrorIs(t, err, ErrWrongSealKey, "cut at %d", at)
	}
}

func TestSealKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.key")
	_, err := LoadSealKey(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	key := NewSealKey()
	require.NoError(t, key.Save(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	got, err := LoadSealKey(path)
	require.NoError(t, err)
	require.Equal(t, key, got)

	for _, mode := range []fs.FileMode{0o640, 0o604, 0o602} {
		require.NoError(t, os.Chmod(path, mode))
		_, err = LoadSealKey(path)
		var exposed *ExposedError
		require.ErrorAs(t, err, &exposed)
		require.ErrorContains(t, err, "chmod 600 "+path)
	}

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, bad := range [][]byte{nil, []byte("key"), content[:len(content)/2], append(bytes.Clone(content), 'x')} {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		require.NoError(t, os.Chmod(path, 0o600))
		_, err = LoadSealKey(path)
		require.Error(t, err)
	}
	_, err = SealKeyOf(key[:31])
	require.Error(t, err)
	same, err := SealKeyOf(key[:])
	require.NoError(t, err)
	require.Equal(t, key, same)
}
