package identity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/test/fuzzing"
)

func text(t testing.TB, token *Token) string {
	t.Helper()
	text, err := token.Text()
	require.NoError(t, err)
	return text
}

func drawAddress(t *rapid.T) string {
	host := rapid.StringMatching(`[a-z][a-z0-9.-]{0,200}|\[::1\]|10\.0\.0\.[1-9]`).Draw(t, "host")
	return fmt.Sprintf("%s:%d", host, rapid.Uint16().Draw(t, "port"))
}

func drawAnyToken(t *rapid.T) *Token {
	var authority Fingerprint
	copy(authority[:], rapid.SliceOfN(rapid.Byte(), len(authority), len(authority)).Draw(t, "authority"))
	addresses := rapid.SliceOfN(rapid.Custom(drawAddress), 1, tokenAddresses).Draw(t, "addresses")
	made := time.Unix(rapid.Int64Range(0, forever.Unix()).Draw(t, "made"), 0)
	return NewToken(rapid.SampledFrom([]Role{Server, Client}).Draw(t, "role"), addresses, authority, made)
}

func TestTokenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := drawAnyToken(t)
		text, err := token.Text()
		require.NoError(t, err)
		require.NotContains(t, text, " ")
		got, err := ParseToken(" " + text + "\r\n")
		require.NoError(t, err)
		require.Equal(t, token, got)
	})
}

// Whatever becomes of a token on the way, it is not taken for another one.
func TestTokenChangedOnTheWay(t *testing.T) {
	token := NewToken(Server, []string{"10.0.0.1:7420", "server-2.example.org:7420"}, Fingerprint{1, 2, 3}, now)
	whole := text(t, token)
	prefix := len(tokenPrefix(Server))
	for at := prefix; at < len(whole); at++ {
		_, err := ParseToken(whole[:at])
		require.ErrorIs(t, err, ErrTokenCut, "the first %d of %d characters", at, len(whole))
	}
	for at := range prefix {
		_, err := ParseToken(whole[:at])
		require.ErrorIs(t, err, ErrNotToken, "the first %d characters", at)
	}
	for at := prefix; at < len(whole); at++ {
		for _, character := range "Aa0-_z" {
			changed := whole[:at] + string(character) + whole[at+1:]
			if changed != whole {
				_, err := ParseToken(changed)
				require.Error(t, err, "%q for character %d", character, at)
			}
		}
	}
	for _, after := range []string{"A", "AA", "AAAA", "=", "x y", strings.Repeat("A", 10000), whole} {
		_, err := ParseToken(whole + after)
		require.ErrorIs(t, err, ErrTokenDamaged, "%q after it", after)
	}
	for _, between := range []string{" ", "\n", "\r\n", "\t"} {
		_, err := ParseToken(whole[:50] + between + whole[50:])
		require.ErrorIs(t, err, ErrTokenDamaged)
		require.ErrorContains(t, err, "white space")
	}
	_, err := ParseToken(tokenPrefix(Client) + whole[prefix:])
	require.ErrorIs(t, err, ErrTokenDamaged, "the role is part of it")
}

func TestTokenOfAnotherVersion(t *testing.T) {
	content, err := tokenEncoding.DecodeString(text(t, NewToken(Client, []string{"a:1"}, Fingerprint{}, now))[len(tokenPrefix(Client)):])
	require.NoError(t, err)
	content[0] = tokenVersion + 1
	for _, size := range []int{1, 20, len(content)} {
		_, err = ParseToken(tokenPrefix(Client) + tokenEncoding.EncodeToString(content[:size]))
		require.ErrorIs(t, err, ErrTokenNewer, "whatever it has after its version")
	}
	content[0] = 0
	_, err = ParseToken(tokenPrefix(Client) + tokenEncoding.EncodeToString(content))
	require.ErrorIs(t, err, ErrTokenDamaged)
}

func TestNoToken(t *testing.T) {
	for _, bad := range []string{"", "lockfs", "lockfs-admin-AAAA", "https://example.org", "LOCKFS-SERVER-AAAA"} {
		_, err := ParseToken(bad)
		require.ErrorIs(t, err, ErrNotToken, bad)
	}
}

// A token that was put together by hand, with a right checksum, has addresses like others, or is refused.
func TestTokenWithBadAddresses(t *testing.T) {
	for _, bad := range [][]string{
		nil, {""}, {"a"}, {"a:"}, {":1"}, {"a:1", "b\nc:1"}, {"a b:1"}, {strings.Repeat("a", 254) + ":1"}, make([]string, 17),
	} {
		token := NewToken(Client, bad, Fingerprint{}, now)
		_, err := token.Text()
		require.Error(t, err, "%q", bad)
	}
	_, err := NewToken(0, []string{"a:1"}, Fingerprint{}, now).Text()
	require.Error(t, err, "no role")

	token := NewToken(Client, []string{"aaa:1"}, Fingerprint{}, now)
	content, err := tokenEncoding.DecodeString(text(t, token)[len(tokenPrefix(Client)):])
	require.NoError(t, err)
	content = content[:len(content)-tokenChecksum]
	copy(content[tokenFixed+1:], "a\x00a:1")
	content = append(content, checksum(Client, content)...)
	_, err = ParseToken(tokenPrefix(Client) + tokenEncoding.EncodeToString(content))
	require.ErrorIs(t, err, ErrTokenDamaged)
}

func TestSecretHash(t *testing.T) {
	token, other := NewToken(Client, nil, Fingerprint{}, now), NewToken(Client, nil, Fingerprint{}, now)
	require.NotEqual(t, token.ID, other.ID)
	require.True(t, token.Secret.Hash().Equal(token.Secret.Hash()))
	require.False(t, token.Secret.Hash().Equal(other.Secret.Hash()))

	id, err := ParseTokenID(token.ID.String())
	require.NoError(t, err)
	require.Equal(t, token.ID, id)
	for _, bad := range []string{"", "12", token.ID.String() + "00", "x" + token.ID.String()[1:]} {
		_, err := ParseTokenID(bad)
		require.Error(t, err, bad)
	}
}

// FuzzParseToken: what is taken for a token has one text, and no error repeats any of it.
func FuzzParseToken(f *testing.F) {
	whole := text(f, NewToken(Server, []string{"10.0.0.1:7420", "[::1]:7420"}, Fingerprint{1}, now))
	for _, seed := range []string{
		"", "lockfs-server-", "lockfs-client-AQ", whole, whole[:len(whole)-1], whole[:60], whole + "A", tokenPrefix(Client) + whole[len(tokenPrefix(Server)):],
		"lockfs-server-Ag", " " + whole + "\n", tokenPrefix(Server) + strings.Repeat("_", 400), "lockfs-server-A=",
	} {
		f.Add(seed)
	}
	fuzzing.Run(f, func(t *testing.T, given string) {
		token, err := ParseToken(given)
		if err != nil {
			if long := strings.TrimSpace(given); len(long) > 120 {
				require.NotContains(t, err.Error(), long[20:])
			}
			return
		}
		again, err := token.Text()
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(given), again)
	})
}
