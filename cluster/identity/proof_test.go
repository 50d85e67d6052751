package identity

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAProofIsOfTheNewestAuthority: of the one that is trusted, or of one that comes after it, and of one
// question and one server only.
func TestAProofIsOfTheNewestAuthority(t *testing.T) {
	first, second, third := newAuthority(t), newAuthority(t), newAuthority(t)
	chain := [][]byte{crossSigned(t, first, second), crossSigned(t, second, third)}
	key, err := NewKey()
	require.NoError(t, err)
	nonce, server := NewNonce(), key.Hash()
	prove := func(authority *Authority) *Proof {
		signature, err := authority.Prove(nonce, server)
		require.NoError(t, err)
		return &Proof{Signature: signature, Signer: append([][]byte{authority.Certificate().Raw}, chain...)}
	}
	for _, test := range []struct {
		trusted, signer *Authority
		counts          bool
	}{
		{first, first, true}, {first, second, true}, {first, third, true}, {second, third, true},
		{second, first, false}, {third, second, false}, {newAuthority(t), first, false},
	} {
		signer, err := prove(test.signer).Check(test.trusted.Certificate(), nonce, server)
		require.Equal(t, test.counts, err == nil, "%v", err)
		if test.counts {
			require.Equal(t, test.signer.Certificate().PublicKey, signer.PublicKey)
			_, err = prove(test.signer).Check(signer, nonce, server)
			require.NoError(t, err, "who has met it trusts it")
		}
	}
	_, err = prove(first).Check(first.Certificate(), NewNonce(), server)
	require.Error(t, err, "another question")
	_, err = prove(first).Check(first.Certificate(), nonce, KeyHash{1})
	require.Error(t, err, "another server")
	_, err = new(Proof).Check(first.Certificate(), nonce, server)
	require.Error(t, err, "nothing")
}

func crossSigned(t testing.TB, older, newer *Authority) []byte {
	t.Helper()
	cross, err := older.CrossSign(newer.Certificate())
	require.NoError(t, err)
	return cross
}

// TestARosterIsKept across a restart of the mount, with the authorities that came with it.
func TestARosterIsKept(t *testing.T) {
	dir := t.TempDir()
	first, second := newAuthority(t), newAuthority(t)
	credentials := enrolled(t, dir, first, Name{Client, "m1"})
	member, gone := KeyHash{1}, KeyHash{2}
	require.Equal(t, Unproven, credentials.Verifier(nil).Status(Name{Server, "a"}, member), "nothing was heard yet")
	roster := &Roster{Version: 7, Members: []Member{{"a", member}}, Revoked: []KeyHash{gone}}
	require.NoError(t, credentials.SetRoster(roster, [][]byte{second.Certificate().Raw, first.Certificate().Raw}))
	loaded, err := Load(dir)
	require.NoError(t, err)
	for _, c := range []*Credentials{credentials, loaded} {
		require.EqualValues(t, 7, c.RosterVersion())
		require.Equal(t, []*x509.Certificate{second.Certificate(), first.Certificate()}, c.Authorities())
		judge := c.Verifier(nil)
		require.Equal(t, CertificateOnly, judge.Status(Name{Server, "a"}, member))
		require.Equal(t, Revoked, judge.Status(Name{Server, "c"}, gone))
		require.Equal(t, Unproven, judge.Status(Name{Server, "d"}, KeyHash{3}))
		require.Equal(t, CertificateOnly, judge.Status(Name{Client, "m2"}, KeyHash{4}), "a certificate is enough for a client")
		require.Equal(t, Revoked, judge.Status(Name{Client, "m3"}, gone))
	}
	require.NoError(t, loaded.Renew(grant(t, second, loaded.Key(), loaded.Name())))
	require.EqualValues(t, 7, loaded.RosterVersion(), "a renewal that brings none leaves it")

	credentials.dir = filepath.Join(dir, "gone") // cannot be written
	require.Error(t, credentials.SetRoster(&Roster{Version: 8, Revoked: []KeyHash{member}}, [][]byte{second.Certificate().Raw}))
	require.Equal(t, Revoked, credentials.Verifier(nil).Status(Name{Server, "a"}, member), "it holds all the same")
	require.Zero(t, credentials.RosterVersion(), "and is told again")

	require.NoError(t, os.WriteFile(filepath.Join(dir, rosterFile), []byte("member a\n"), 0o600))
	_, err = Load(dir)
	require.ErrorContains(t, err, "remove it")
}

// TestASealKeyIsSharedWithOneServer and bound to its authority.
func TestASealKeyIsSharedWithOneServer(t *testing.T) {
	authority, seal := newAuthority(t), NewSealKey()
	server, other := host(t, authority, Server, "a", now), host(t, authority, Server, "b", now)
	share, err := seal.ShareWith(server.Leaf(), authority.Fingerprint())
	require.NoError(t, err)
	opened, err := server.Key().OpenShare(share, authority.Fingerprint())
	require.NoError(t, err)
	require.Equal(t, seal, opened)
	_, err = other.Key().OpenShare(share, authority.Fingerprint())
	require.Error(t, err)
	_, err = server.Key().OpenShare(share, newAuthority(t).Fingerprint())
	require.Error(t, err)
}

// TestATokenSignsARequest without showing its secret.
func TestATokenSignsARequest(t *testing.T) {
	token := NewToken(Client, []string{"a:1"}, Fingerprint{}, now)
	request := []byte("request")
	public, signature := token.Secret.Sign(request)
	hash, err := CheckTokenSignature(request, public, signature)
	require.NoError(t, err)
	require.Equal(t, token.Secret.Hash(), hash)
	require.NotContains(t, string(public)+string(signature), string(token.Secret[:]))
	for _, wrong := range [][3][]byte{{[]byte("another"), public, signature}, {request, public[:31], signature}, {request, public, nil}} {
		_, err := CheckTokenSignature(wrong[0], wrong[1], wrong[2])
		require.Error(t, err)
	}
}
