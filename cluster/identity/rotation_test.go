package identity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cluster goes from its first authority to a second and a third; those who are behind by any number
// follow.
func TestRotation(t *testing.T) {
	first, second, third := newAuthority(t), newAuthority(t), newAuthority(t)
	secondByFirst, err := first.CrossSign(second.Certificate())
	require.NoError(t, err)
	thirdBySecond, err := second.CrossSign(third.Certificate())
	require.NoError(t, err)
	require.NotEqual(t, second.Fingerprint(), FingerprintOf(parsed(t, secondByFirst)))

	of := func(key *Key, called Name, by *Authority, chain [][]byte, trusted ...*Authority) IssuedCert {
		grant := IssuedCert{Leaf: issue(t, by, key, called, now), Chain: chain}
		for _, authority := range trusted {
			grant.Authorities = append(grant.Authorities, authority.Certificate().Raw)
		}
		return grant
	}
	behind := host(t, first, Client, "behind", now)
	oldServer := host(t, first, Server, "s0", now)
	key := newKey(t)
	server, err := NewCredentials(key, of(key, Name{Server, "s1"}, first, nil, first))
	require.NoError(t, err)

	meets := func(judge Verifier, client *Credentials) {
		t.Helper()
		met := connect(t, server.ServerConfig(judge, allProtocols...), client.ClientConfig(client.Verifier(nil), ProtocolRPC))
		met.requireLetIn(t)
	}
	meets(stateOf(now, first).admit(behind), behind)

	// The second is the one that signs.
	both := [][]byte{secondByFirst}
	require.NoError(t, server.Renew(of(key, server.Name(), second, both, first, second)))
	require.Equal(t, second.Fingerprint(), server.Signer())
	clientKey := newKey(t)
	ahead, err := NewCredentials(clientKey, of(clientKey, Name{Client, "ahead"}, second, both, first, second))
	require.NoError(t, err)
	meets(stateOf(now, first, second).admit(behind), behind)
	meets(stateOf(now, first, second).admit(ahead), ahead)
	meets(stateOf(now, first).admit(ahead), ahead) // a server whose state is behind
	met := connect(t, oldServer.ServerConfig(stateOf(now, first, second).admit(ahead), ProtocolRPC), ahead.ClientConfig(ahead.Verifier(nil), ProtocolRPC))
	require.NoError(t, met.client)

	// Tokens of any time.
	for _, authority := range []*Authority{first, second} {
		found, err := discover(t, server, authority.Fingerprint(), now)
		require.NoError(t, err)
		met := connect(t, server.ServerConfig(stateOf(now), ProtocolJoin), JoinConfig(found, now))
		require.NoError(t, met.client)
	}

	// The third, and the first is dropped.
	all := [][]byte{thirdBySecond, secondByFirst}
	require.NoError(t, server.Renew(of(key, server.Name(), third, all, second, third)))
	requireRefused(t, connect(t, server.ServerConfig(stateOf(now, second, third).admit(behind), ProtocolRPC),
		behind.ClientConfig(behind.Verifier(nil), ProtocolRPC)).server, OtherCluster)
	met = connect(t, server.ServerConfig(stateOf(now, second, third), ProtocolJoin), behind.ClientConfig(behind.Verifier(nil), ProtocolJoin))
	require.NoError(t, met.server, "it can ask for a renewal")
	require.NoError(t, met.client, "and knows whom it asks")
	require.NoError(t, behind.Renew(of(behind.Key(), behind.Name(), third, all, second, third)))
	meets(stateOf(now, second, third).admit(behind), behind)
	meets(stateOf(now, second, third).admit(ahead), ahead)

	_, err = discover(t, server, first.Fingerprint(), now)
	requireRefused(t, err, OtherCluster)
}

// A host finds in its directory the leaf of an authority that it no longer trusts, or the new authority
// without a leaf of it: it goes on.
func TestRotationIsCut(t *testing.T) {
	dir := t.TempDir()
	first, second := newAuthority(t), newAuthority(t)
	credentials := enrolled(t, dir, first, Name{Client, "m1"})
	renewed, err := parseIssuedCert(grant(t, second, credentials.Key(), credentials.Name()))
	require.NoError(t, err)
	steps := writeSteps(dir, renewed.with(credentials.Key()))
	require.NoError(t, run(steps[:2]))
	loaded, err := Load(dir)
	require.NoError(t, err)
	require.Zero(t, loaded.Signer(), "none that is trusted: it is time to renew")
	require.NoError(t, loaded.Renew(grant(t, second, loaded.Key(), loaded.Name())))
	require.Equal(t, second.Fingerprint(), loaded.Signer())
	require.False(t, loaded.NeedsRenewal(now.Add(time.Hour)))
}
