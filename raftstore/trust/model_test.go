package trust

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

// model is what a table means, in maps and without any order of what is done.
type model struct {
	now         int64
	authorities []string
	shares      map[string]int // of the seal key of each authority
	tokens      map[string]*modelToken
	hosts       map[string]*modelHost
	revoked     map[string]bool // keys
}

type modelToken struct {
	role    storepb.Role
	host    string
	secret  string
	expires int64
	squash  bool
	most    int // hosts that it may let in
	letIn   int
}

type modelHost struct {
	role      storepb.Role
	key       string
	token     string
	authority string
	notAfter  int64
	squash    bool
}

func newModel() *model {
	return &model{shares: map[string]int{}, tokens: map[string]*modelToken{}, hosts: map[string]*modelHost{}, revoked: map[string]bool{}}
}

func (m *model) pass(now int64) {
	m.now = now
	for id, token := range m.tokens {
		if token.expires <= now {
			delete(m.tokens, id)
		}
	}
}

// admitted tells whether a host may use the cluster.
func (m *model) admitted(name string, role storepb.Role, key string) bool {
	h := m.hosts[name]
	return h != nil && h.role == role && h.key == key && !m.revoked[key]
}

// live tells whether somebody has a name.
func (m *model) live(name string) bool { return m.hosts[name] != nil && !m.revoked[m.hosts[name].key] }

// wanted is somebody who wants to come in.
type wanted struct {
	modelHost
	name, secret string
	founding     bool
}

// admit tells whether he comes in, and whether that used his token.
func (m *model) admit(w wanted) (in, used bool) {
	if !slices.Contains(m.authorities, w.authority) || m.revoked[w.key] {
		return false, false
	}
	isHimself := m.admitted(w.name, w.role, w.key)
	if isHimself && (w.founding || w.token == "" || w.token == m.hosts[w.name].token) {
		h := *m.hosts[w.name]
		h.authority, h.notAfter = w.authority, w.notAfter
		m.hosts[w.name] = &h
		return true, false
	}
	h := w.modelHost
	if w.founding {
		if w.role != server {
			return false, false
		}
		h.token, h.squash = "", false
		m.replace(w.name, &h)
		return true, false
	}
	token := m.tokens[w.token]
	switch {
	case token == nil, token.secret != w.secret, token.letIn >= token.most, token.role != w.role:
		return false, false
	case token.host != "" && token.host != w.name:
		return false, false
	case m.live(w.name) && m.hosts[w.name].key != w.key && token.host == "":
		return false, false
	}
	token.letIn++
	h.squash = token.squash
	m.replace(w.name, &h)
	return true, true
}

// replace lets a host in. Nobody is to have the key any more that a server of that name had, unless somebody else has it.
func (m *model) replace(name string, h *modelHost) {
	was, live := m.hosts[name], m.live(name)
	m.hosts[name] = h
	if !live || was.role != server {
		return
	}
	for other, host := range m.hosts {
		if m.live(other) && host.key == was.key {
			return
		}
	}
	m.revoked[was.key] = true
}

func (m *model) mayDrop(authority string) bool {
	at := slices.Index(m.authorities, authority)
	if at != 0 || len(m.authorities) == 1 {
		return false
	}
	for name, h := range m.hosts {
		if m.live(name) && h.authority == authority && h.notAfter > m.now {
			return false
		}
	}
	m.authorities = m.authorities[1:]
	return true
}

func TestTableAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, m := New(digest.New()), newModel()
		draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		name := func() string { return draw("name", "a", "b", "c") }
		tokenID := func() string { return draw("token", "", "t", "t", "t", "u", "u", "u") }
		authority := func() string {
			if len(m.authorities) > 0 && rapid.IntRange(0, 3).Draw(t, "trusted") > 0 {
				return rapid.SampledFrom(m.authorities).Draw(t, "authority")
			}
			return draw("authority", "x", "y", "z")
		}
		role := func() storepb.Role {
			return rapid.SampledFrom([]storepb.Role{server, client, client, client}).Draw(t, "role")
		}
		span := func() int64 { return rapid.Int64Range(0, 3).Draw(t, "span") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { requireAgreement(t, m, table) },
			"authority": func(t *rapid.T) {
				step(m, table, span())
				which := authority()
				op, shares := authorityOf(which), rapid.IntRange(0, 2).Draw(t, "shares")
				op.Shares = sharesOf([]string{"k", "l"}[:shares]...)
				_, added := table.AddAuthority(op)
				m.shares[which] = shares
				isNew := !slices.Contains(m.authorities, which)
				require.Equal(t, isNew, added)
				if isNew {
					m.authorities = append(m.authorities, which)
				}
			},
			"drop": func(t *rapid.T) {
				step(m, table, span())
				which := authority()
				want := m.mayDrop(which)
				require.Equal(t, want, table.DropAuthority(fingerprintOf(which)).GetCode() == storepb.Code_OK)
			},
			"put": func(t *rapid.T) {
				step(m, table, span())
				id, secret := tokenID(), draw("secret", "1", "1", "1", "2")
				token := &modelToken{
					role: role(), host: draw("host", "", "", "a", "b"), secret: secret, expires: m.now + 20*span(),
					squash: rapid.Bool().Draw(t, "squash"), most: rapid.IntRange(0, 3).Draw(t, "uses"),
				}
				_, made := table.PutToken(&storepb.PutToken{SecretHash: hashOf(secret), Token: &storepb.JoinToken{
					Id: []byte(id), Role: token.role, Host: token.host, Uses: uint32(token.most), Expires: token.expires, SquashRoot: token.squash,
				}})
				want := id != "" && token.most > 0 && token.expires > m.now && m.tokens[id] == nil
				require.Equal(t, want, made)
				if made {
					m.tokens[id] = token
				}
			},
			"delete": func(t *rapid.T) {
				step(m, table, span())
				id := tokenID()
				require.Equal(t, m.tokens[id] != nil, table.DeleteToken([]byte(id)).GetCode() == storepb.Code_OK)
				delete(m.tokens, id)
			},
			"admit": func(t *rapid.T) {
				step(m, table, span())
				requireAdmit(t, m, table, wanted{
					modelHost: modelHost{role: role(), key: draw("key", "k", "l", "m", "n", "o", "p"), token: tokenID(), authority: authority(), notAfter: m.now + 10*span()},
					name:      name(), secret: draw("secret", "1", "1", "1", "2"), founding: rapid.IntRange(0, 9).Draw(t, "founding") == 0,
				})
			},
			"again": func(t *rapid.T) { // a host that is in renews, or comes with its token again
				who := name()
				known := m.hosts[who]
				if known == nil {
					t.Skip("nobody has that name")
				}
				step(m, table, span())
				again := wanted{modelHost: *known, name: who, secret: "1"}
				again.authority, again.notAfter = authority(), m.now+5*span()
				if rapid.Bool().Draw(t, "renewal") {
					again.token = ""
				}
				requireAdmit(t, m, table, again)
			},
			"revoke": func(t *rapid.T) {
				step(m, table, span())
				who := name()
				_, revoked := table.Revoke(who)
				require.Equal(t, m.live(who), revoked)
				if revoked {
					m.revoked[m.hosts[who].key] = true
				}
			},
		})
	})
}

func step(m *model, table *Table, span int64) {
	m.pass(m.now + span)
	table.Begin(table.index+1, m.now)
}

func requireAdmit(t *rapid.T, m *model, table *Table, w wanted) {
	before := map[[2]string]bool{}
	for name, h := range m.hosts {
		before[[2]string{name, h.key}] = m.admitted(name, h.role, h.key)
	}
	op := &storepb.AdmitHost{
		TokenId: []byte(w.token), SecretHash: hashOf(w.secret), Founding: w.founding,
		Host: &storepb.Admission{
			Name: w.name, Role: w.role, KeyHash: hashOf(w.key), Certificate: []byte("certificate"), Authority: fingerprintOf(w.authority), NotAfter: w.notAfter,
		},
	}
	wasIn := m.admitted(w.name, w.role, w.key)
	in, used := m.admit(w)
	left := table.usesOf(w.token)
	result, joined := table.Admit(op)
	require.Equal(t, in, result.GetCode() == storepb.Code_OK, "%v", result)
	require.True(t, wasIn || joined == in, "who comes in for the first time joins")
	require.Equal(t, used, table.usesOf(w.token) == left-1, "use of a token")
	for who, was := range before {
		if h := m.hosts[who[0]]; was && h.key != who[1] {
			require.Equal(t, table.index, table.LastRevocation(), "%s has another key", who[0])
		}
	}
}

// usesOf is how often a token lets somebody in; -1: it is not there.
func (t *Table) usesOf(token string) int {
	record, found := t.tokens.Get(token)
	if !found {
		return -1
	}
	return int(record.GetToken().GetUses())
}

func requireAgreement(t *rapid.T, m *model, table *Table) {
	for _, name := range []string{"a", "b", "c"} {
		for _, key := range []string{"k", "l", "m", "n", "o", "p"} {
			for _, role := range []storepb.Role{server, client} {
				err := table.Admitted(name, role, hashOf(key))
				require.Equal(t, m.admitted(name, role, key), err == nil, "%s as %v with %s: %v", name, role, key, err)
			}
		}
		h, host := m.hosts[name], table.Host(name)
		require.Equal(t, h != nil, host != nil)
		if h != nil {
			require.True(t, proto.Equal(&storepb.Admission{
				Name: name, Role: h.role, KeyHash: hashOf(h.key), Certificate: []byte("certificate"), Authority: fingerprintOf(h.authority),
				NotAfter: h.notAfter, SquashRoot: h.squash, TokenId: []byte(h.token), Admitted: host.GetAdmitted(), Revoked: host.GetRevoked(),
			}, host), "%v", host)
			require.Equal(t, m.live(name), host.GetRevoked() == 0)
		}
	}
	require.Len(t, table.Tokens(), len(m.tokens))
	next := int64(math.MaxInt64)
	for id, token := range m.tokens {
		require.Equal(t, token.most-token.letIn, table.usesOf(id))
		next = min(next, token.expires)
	}
	require.Equal(t, next, table.NextDue())
	require.Len(t, table.Authorities(), len(m.authorities))
	if len(m.authorities) > 0 {
		require.Len(t, table.Signing().GetShares(), m.shares[m.authorities[len(m.authorities)-1]])
	}
	for i, authority := range table.Authorities() {
		require.Equal(t, fingerprintOf(m.authorities[len(m.authorities)-1-i]), authority.GetFingerprint())
	}
	requireRestorable(t, table)
}
