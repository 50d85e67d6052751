package security

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A token taken apart, as whoever gets hold of it can.
type token struct {
	prefix     string
	before     []byte // version, fingerprint, when it was made
	id, secret []byte
	addresses  []string
}

func parseToken(t testing.TB, text string) token {
	t.Helper()
	cut := strings.LastIndex(text[:len("lockfs-server-")], "-") + 1
	content, err := base64.RawURLEncoding.DecodeString(text[cut:])
	require.NoError(t, err)
	parsed := token{prefix: text[:cut], before: content[:41], id: content[41:49], secret: content[49:65]}
	rest := content[66 : len(content)-4]
	for range content[65] {
		parsed.addresses = append(parsed.addresses, string(rest[1:1+rest[0]]))
		rest = rest[1+rest[0]:]
	}
	require.Equal(t, text, parsed.text())
	return parsed
}

func (k token) text() string {
	content := bytes.Join([][]byte{k.before, k.id, k.secret, {byte(len(k.addresses))}}, nil)
	for _, address := range k.addresses {
		content = append(append(content, byte(len(address))), address...)
	}
	sum := sha256.Sum256(append([]byte(k.prefix), content...))
	return k.prefix + base64.RawURLEncoding.EncodeToString(append(content, sum[:4]...))
}

// enroll asks to be let in under a name, as lockfs up does but without looking at who is asked, and answers the result. Without a
// key it draws one.
func (v visitor) enroll(t testing.TB, servers []string, with, name string, key *ecdsa.PrivateKey) message {
	t.Helper()
	return v.enrollBy(t, servers, parseToken(t, with), name, key).result(3)
}

func (v visitor) enrollBy(t testing.TB, servers []string, with token, name string, key *ecdsa.PrivateKey) answer {
	t.Helper()
	if key == nil {
		key = newKey(t)
	}
	if v.certificate != nil {
		key = v.certificate.PrivateKey.(*ecdsa.PrivateKey)
		v.certificate = nil
	}
	host, _, _ := strings.Cut(name, ".")
	names := []string{name}
	if strings.HasSuffix(name, ".server.lockfs") {
		names = []string{"server.lockfs", name}
	}
	return v.askFor(t, protocolJoin, servers, methodEnroll, enrollment(with.id, with.secret, host, request(t, key, names...)))
}

// enrollment is the message that asks for a certificate by a token: signed with a key made of its secret, which is not in it.
func enrollment(id, secret []byte, host string, request []byte) message {
	seed := sha256.Sum256(append([]byte("lockfs join token: seed\x00"), secret...))
	key := ed25519.NewKeyFromSeed(seed[:])
	signature := ed25519.Sign(key, append([]byte("lockfs join token: certificate request\x00"), request...))
	return message{}.bytes(1, id).text(3, host).bytes(4, request).bytes(5, key.Public().(ed25519.PublicKey)).bytes(6, signature)
}

// TestTokensThatAreNotGood lets nobody in by a token that is used up, or for others, or not from here.
func TestTokensThatAreNotGood(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	elsewhere := testcluster.StartSecureCluster(t, 1)
	joiner := visitor{host: p.stranger}
	servers := p.addresses()
	forServers, once := p.JoinToken(t, "server"), p.NewJoinToken(t, "--role", "client")
	key := newKey(t)

	first := joiner.enrollBy(t, servers, parseToken(t, once), "x.client.lockfs", key)
	require.Zero(t, first.result(3).numberOf(1), "%v", first)
	require.NotEmpty(t, first.message.textOf(4), "a certificate")
	require.Empty(t, first.message.textOf(7), "the key that the authority's is sealed with is for servers")
	p.requireNoEffect(t, func() {
		again := joiner.enrollBy(t, servers, parseToken(t, once), "x.client.lockfs", key)
		require.Equal(t, first.message.textOf(4), again.message.textOf(4), "who asks again, with his key, gets what he has")
	})

	damaged := parseToken(t, p.JoinToken(t, "client"))
	damaged.secret = bytes.Repeat([]byte{7}, 16)
	unknown := parseToken(t, p.JoinToken(t, "client"))
	unknown.id = bytes.Repeat([]byte{7}, 8)
	expired := p.NewJoinToken(t, "--role", "client", "--ttl", "2s")
	foreign := elsewhere.JoinToken(t, "client")
	named := p.NewJoinToken(t, "--role", "client", "--host", "wanted")
	withdrawn := p.NewJoinToken(t, "--role", "client")
	_, err := p.Nodes[0].Lockfs("token", "revoke", fmt.Sprintf("%x", parseToken(t, withdrawn).id))
	require.NoError(t, err)
	event := p.Nodes[0].Events(t)
	hosts.Eventually(t, "the token expires", func() (string, bool) {
		list, err := p.Nodes[0].Lockfs("token", "list", "--json")
		return list, err == nil && !strings.Contains(list, fmt.Sprintf("%x", parseToken(t, expired).id))
	})
	for _, bad := range []struct {
		what, token, name string
	}{
		{"used up", once, "y.client.lockfs"},
		{"used up, for the host that used it", once, "x.client.lockfs"},
		{"with a wrong secret", damaged.text(), "y.client.lockfs"},
		{"with an unknown id", unknown.text(), "y.client.lockfs"},
		{"with an unknown id, to see who is there", unknown.text(), "m.client.lockfs"},
		{"expired", expired, "y.client.lockfs"},
		{"of another cluster", foreign, "y.client.lockfs"},
		{"for a host of another name", named, "y.client.lockfs"},
		{"that was withdrawn", withdrawn, "y.client.lockfs"},
		{"for a mount, to be a server", p.JoinToken(t, "client"), "y.server.lockfs"},
		{"for a server, to be a mount", forServers, "y.client.lockfs"},
		{"for a name that another host has", p.JoinToken(t, "client"), "m.client.lockfs"},
		{"for the name of a server", forServers, "a.server.lockfs"},
		{"for no name", p.JoinToken(t, "client"), "client.lockfs"},
		{"for the name that all servers have", p.JoinToken(t, "client"), "server.lockfs"},
	} {
		t.Run(bad.what, func(t *testing.T) {
			said := joiner.enrollBy(t, servers, parseToken(t, bad.token), bad.name, nil)
			assert.Contains(t, []uint64{codeNotPermitted, codeInvalid, codeBusy}, said.result(3).numberOf(1), "%v", said)
			assert.NotEmpty(t, said.result(3).textOf(2), "words")
			if bad.token == unknown.text() {
				assert.NotContains(t, said.result(3).textOf(2), `"m"`)
			}
			for field := 4; field <= 8; field++ {
				assert.Empty(t, said.message.textOf(4), "nothing is granted")
			}
		})
	}
	var refused []testcluster.Event
	for _, e := range p.Nodes[0].Events(t)[len(event):] {
		refused = append(refused, e)
		assert.Equal(t, "join_refused", e.Event, "nothing else has happened")
	}
	assert.Len(t, refused, 1, "one is told for each address in a minute")
	text, err := p.Nodes[0].Lockfs("host", "admitted", "--json")
	require.NoError(t, err)
	assert.NotContains(t, text, `"y"`)
	var log strings.Builder
	for _, n := range p.Nodes {
		log.WriteString(n.Server.Log())
	}
	assert.Contains(t, log.String(), "a host may not join")
	for _, secret := range []string{once, foreign, named, withdrawn, forServers, p.JoinToken(t, "client")} {
		assert.NotContains(t, log.String(), secret[len("lockfs-server-"):])
		assert.NotContains(t, log.String(), fmt.Sprintf("%x", parseToken(t, secret).secret))
	}
}

// TestATokenLetsInSoManyAtOnce has many come at the same time with a token for three of them.
func TestATokenLetsInSoManyAtOnce(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 1)
	with := parseToken(t, c.NewJoinToken(t, "--role", "client", "--uses", "3"))
	joiner := visitor{host: c.Net.Host("stranger")}
	const many = 8 // connections that an address may have at once
	results := make(chan uint64, many)
	for i := range many {
		m := enrollment(with.id, with.secret, fmt.Sprint("h", i), request(t, newKey(t), fmt.Sprintf("h%d.client.lockfs", i)))
		go func() {
			said, err := joiner.call(c.Nodes[0].Addr(), protocolJoin, methodEnroll, m)
			if err != nil {
				results <- 1 << 32
				return
			}
			results <- said.result(3).numberOf(1)
		}()
	}
	got := make(map[uint64]int)
	for range many {
		got[<-results]++
	}
	require.Equal(t, map[uint64]int{codeOK: 3, codeNotPermitted: many - 3}, got)
}

// rate is more than what one address may ask for at once.
const rate = 80

// TestGuessingIsSlow answers an address that asks too often that it does.
func TestGuessingIsSlow(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 1)
	with := parseToken(t, c.JoinToken(t, "client"))
	joiner := visitor{host: c.Net.Host("stranger")}
	conn, err := joiner.connect(c.Nodes[0].Addr(), protocolJoin)
	require.NoError(t, err)
	_, err = conn.Write([]byte(rpcPreface))
	require.NoError(t, err)
	key := newKey(t)
	got := make(map[uint64]int)
	for i := range rate {
		guess := binary.BigEndian.AppendUint64(nil, uint64(i))
		m := enrollment(with.id, append(guess, guess...), "x", request(t, key, "x.client.lockfs"))
		_, err := conn.Write(frame(methodEnroll, m))
		require.NoError(t, err)
	}
	for range rate {
		said, err := readAnswer(conn)
		require.NoError(t, err)
		got[said.result(3).numberOf(1)]++
	}
	require.Positive(t, got[codeTooMany], "%v", got)
	require.Equal(t, rate, got[codeTooMany]+got[codeNotPermitted], "%v", got)
	g := c.AddGuest(t, "m")
	g.Start(t) // from another address, nobody waits
	require.NoError(t, g.Daemon.Stop())
}

// TestTheJoinTokenIsOnNoCommandLine of the daemon that joined with it, nor of that daemon's guard, whoever looks.
func TestTheJoinTokenIsOnNoCommandLine(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t)
	c.Secure = true
	c.Add(t).Start(t)
	token := c.NewJoinToken(t, "--role", "client")
	m := c.AddGuest(t, "m", "--token", token)
	m.Start(t)
	testcluster.RequireLocking(t, c, m.Host, c.Nodes[0].Host)
	lines := m.Host.MustRun(t, "sh", "-c", `cat /proc/[0-9]*/cmdline | tr '\0' ' '`)
	require.Contains(t, lines, "mount")
	require.NotContains(t, lines, strings.TrimSpace(token))
}
