package security

import (
	"crypto/ecdsa"
	"crypto/tls"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// portFlags open all ports there are to other hosts.
var portFlags = []string{"--http-addr", "0.0.0.0:7422", "--forrst-addr", "0.0.0.0:7423"}

// A place is a cluster of three servers with a mount on the host m, and a stranger's host.
type place struct {
	*testcluster.Cluster
	mount    *testcluster.Guest
	stranger *hosts.Host
}

func newPlace(t testing.TB) *place {
	t.Helper()
	c := testcluster.StartSecureCluster(t, 3, portFlags...)
	p := &place{c, c.AddGuest(t, "m"), c.Net.Host("stranger")}
	p.mount.Start(t)
	c.Nodes[0].Host.MustRun(t, "sh", "-c", "echo secret > "+c.Path("secret-name"))
	return p
}

// addresses are those where servers say what they do.
func (p *place) addresses() (all []string) {
	for _, n := range p.Nodes {
		all = append(all, n.Addr())
	}
	return all
}

// state is what all servers have come to, by its index and hash.
func (p *place) state(t testing.TB) testcluster.NodeStatus {
	t.Helper()
	p.RequireSameState(t)
	s, err := p.Nodes[0].Status()
	require.NoError(t, err)
	return testcluster.NodeStatus{StateIndex: s.Nodes[0].StateIndex, StateHash: s.Nodes[0].StateHash}
}

// requireNoEffect requires that something changes nothing on any server.
func (p *place) requireNoEffect(t testing.TB, of func()) {
	t.Helper()
	before := p.state(t)
	of()
	require.Equal(t, before, p.state(t), "the state changed")
}

// count is the sum of a metric over all servers, of those of its series that have some labels.
func (p *place) count(t testing.TB, metric, labels string) (sum int) {
	t.Helper()
	series := regexp.MustCompile(`(?m)^` + metric + regexp.QuoteMeta(labels) + ` (\S+)$`)
	for _, n := range p.Nodes {
		text := p.metrics(t, n)
		if found := series.FindStringSubmatch(text); found != nil {
			value, err := strconv.ParseFloat(found[1], 64)
			require.NoError(t, err)
			sum += int(value)
		}
	}
	return sum
}

// metrics asks a server, whose port for that wants a certificate.
func (p *place) metrics(t testing.TB, n *testcluster.Node) string {
	t.Helper()
	_, body, err := get(asIn(t, n.Host, n.Identity()), n.Host.Addr()+":7422", "/metrics")
	require.NoError(t, err)
	return body
}

// TestStrangersHearNothing has somebody knock at each port of each server, with everything that is no certificate of this cluster.
func TestStrangersHearNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	other := newAuthority(t)
	copied := asIn(t, p.stranger, p.IdentityDir("m"))                                                 // what anybody may see in a handshake, without the key
	ofMount := &authority{copied.certificate.Leaf, copied.certificate.PrivateKey.(*ecdsa.PrivateKey)} // which is none
	for _, v := range []struct {
		what        string
		certificate *tls.Certificate
	}{
		{"no certificate", nil},
		{"a mount's of another authority", other.issue(t, []string{"m.client.lockfs"})},
		{"a server's of another authority", other.issue(t, []string{"server.lockfs", "a.server.lockfs"})},
		{"another authority's and it", other.issue(t, []string{"m.client.lockfs"}, other.certificate.Raw)},
		{"another authority's and a right one", other.issue(t, []string{"m.client.lockfs"}, copied.certificate.Certificate...)},
		{"a right one without its key", &tls.Certificate{Certificate: copied.certificate.Certificate, PrivateKey: newKey(t)}},
		{"below a mount's", ofMount.issue(t, []string{"server.lockfs", "a.server.lockfs"}, copied.certificate.Certificate...)},
	} {
		t.Run(v.what, func(t *testing.T) {
			visitor := visitor{p.stranger, v.certificate}
			before := p.count(t, "lockfs_failed_handshakes_total", "")
			tried := 0
			p.requireNoEffect(t, func() {
				for _, address := range p.addresses() {
					for _, protocol := range []string{protocolRPC, protocolRaft, "h2", ""} {
						said := append([]byte(rpcPreface), frame(methodStatus, nil)...)
						heard, err := visitor.hears(address, protocol, said)
						assert.ErrorContains(t, err, "tls: ", "%s at %s", protocol, address)
						assert.Empty(t, heard, "%s at %s", protocol, address)
						tried++
					}
				}
				for _, n := range p.Nodes {
					for _, port := range []string{":7422", ":7423"} {
						for _, path := range []string{"/healthz", "/metrics", "/forrst", "/"} {
							_, body, err := get(visitor, n.Host.Addr()+port, path)
							assert.Error(t, err, "%s%s: the alert, or that the connection ended while the request was written", port, path)
							assert.Empty(t, body)
						}
					}
				}
			})
			hosts.Eventually(t, "all of them are counted", func() (string, bool) {
				now := p.count(t, "lockfs_failed_handshakes_total", "")
				return fmt.Sprint(now), now >= before+tried
			})
			p.requireLogged(t, "a connection is refused")
		})
	}
	t.Run("without TLS", func(t *testing.T) {
		p.requireNoEffect(t, func() {
			for _, address := range p.addresses() {
				heard := plainly(t, p.stranger, address, append([]byte(rpcPreface), frame(methodStatus, nil)...))
				assert.Len(t, heard, 17, "a frame without a message")
				assert.Equal(t, kindNeedsTLS, heard[12])
				for _, said := range []string{raftPreface + "\x00", "GET / HTTP/1.0\r\n\r\n", "\x16\x03\x01\x00\x05hello", string(make([]byte, 4096))} {
					heard := plainly(t, p.stranger, address, []byte(said))
					if len(heard) == 17 {
						assert.Equal(t, kindNeedsTLS, heard[12])
					} else {
						assert.LessOrEqual(t, len(heard), 7, "an alert: %q", heard)
					}
				}
			}
			for _, n := range p.Nodes {
				for _, port := range []string{":7422", ":7423"} {
					heard := plainly(t, p.stranger, n.Host.Addr()+port, []byte("GET /metrics HTTP/1.0\r\n\r\n"))
					assert.NotContains(t, string(heard), "lockfs_")
					assert.NotContains(t, string(heard), "secret-name")
				}
			}
		})
	})
	t.Run("to join only", func(t *testing.T) {
		p.requireNoEffect(t, func() {
			for _, address := range p.addresses() {
				for method := range methodEnroll {
					said, err := visitor{host: p.stranger}.call(address, protocolJoin, method, nil)
					require.NoError(t, err)
					assert.Equal(t, answer{kind: kindNoMethod, message: message{}}, said, "method %d", method)
				}
			}
		})
	})
}

// requireLogged requires that each server has said something of the stranger.
func (p *place) requireLogged(t testing.TB, what string) {
	t.Helper()
	for _, n := range p.Nodes {
		hosts.Eventually(t, what, func() (string, bool) {
			return n.Server.Log(), regexp.MustCompile(what + ".*" + regexp.QuoteMeta(p.stranger.Addr())).MatchString(n.Server.Log())
		})
	}
}

// TestAnExpiredHostIsLetInAgain turns away who has let his certificate end, but for its renewal.
func TestAnExpiredHostIsLetInAgain(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t)
	c.Secure, c.Program = true, testcluster.FaultyProgram(t)
	n := c.Add(t)
	n.Environment = []string{"LOCKFS_TEST_CERTIFICATE_VALIDITY=3s"}
	n.Start(t)
	m := c.AddGuest(t, "m")
	m.Start(t)
	require.NoError(t, m.Daemon.Stop())
	old := asIn(t, m.Host, c.IdentityDir("m"))

	hosts.Eventually(t, "the certificate ends", func() (string, bool) {
		said, err := old.call(n.Addr(), protocolRPC, methodStatus, nil)
		return fmt.Sprint(said, err), err != nil
	})
	heard, err := old.hears(n.Addr(), protocolRPC, append([]byte(rpcPreface), frame(methodStatus, nil)...))
	require.ErrorContains(t, err, "tls: ")
	require.Empty(t, heard)
	require.NoError(t, n.Server.WaitOutput("expired"))

	m.Start(t)
	testcluster.RequireLocking(t, c, m.Host, n.Host)
	renewed := asIn(t, m.Host, c.IdentityDir("m"))
	require.NotEqual(t, old.certificate.Certificate[0], renewed.certificate.Certificate[0])
	require.NoError(t, m.Daemon.Stop())
}

// TestARevokedHostIsOut takes a host's right from it, and its session, and ends its connections.
func TestARevokedHostIsOut(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	own := asIn(t, p.mount.Host, p.IdentityDir("m"))
	for _, address := range p.addresses() {
		said, err := own.call(address, protocolRPC, methodStatus, nil)
		require.NoError(t, err)
		require.Equal(t, kindAnswered, said.kind)
	}
	_, err := p.Nodes[0].Lockfs("host", "revoke", "m")
	require.NoError(t, err)
	p.Nodes[0].AwaitSession(t, "m", "its session ends", testcluster.NoSession)
	for _, address := range p.addresses() {
		hosts.Eventually(t, "the server knows that it is revoked", func() (string, bool) {
			_, err := own.call(address, protocolRPC, methodStatus, nil)
			return fmt.Sprint(err), err != nil
		})
	}
	_, err = p.mount.Host.Run("timeout", "5", "cat", p.Path("secret-name"))
	require.Error(t, err)
	p.mount.Kill() // it asks for another certificate, and an event tells that it gets none
	p.requireNoEffect(t, func() {
		for _, address := range p.addresses() {
			for _, protocol := range []string{protocolRPC, protocolRaft} {
				heard, err := own.hears(address, protocol, append([]byte(rpcPreface), frame(methodStatus, nil)...))
				require.ErrorContains(t, err, "tls: ", "%s at %s", protocol, address)
				require.Empty(t, heard)
			}
			_, body, err := get(own, address[:len(address)-len("7420")]+"7422", "/metrics")
			require.Error(t, err)
			require.Empty(t, body)
		}
	})
	// Its key is of no use ever again, not even with a token.
	again := own.enroll(t, p.addresses(), p.NewJoinToken(t, "--role", "client", "--host", "m"), "m.client.lockfs", nil)
	require.EqualValues(t, codeNotPermitted, again.numberOf(1), "%q", again)
}
