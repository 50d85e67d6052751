package namespace

import (
	"bytes"
	"crypto/sha256"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/trust"
)

func sumOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func tokenFor(id string, role storepb.Role, expires int64) *storepb.PutToken {
	return &storepb.PutToken{
		Token: &storepb.JoinToken{Id: []byte(id), Role: role, Uses: 2, Expires: expires}, SecretHash: sumOf("secret of " + id),
	}
}

func hostFor(name string, role storepb.Role, key, token string) *storepb.AdmitHost {
	return &storepb.AdmitHost{
		TokenId: []byte(token), SecretHash: sumOf("secret of " + token),
		Host: &storepb.Admission{
			Name: name, Role: role, KeyHash: sumOf(key), Certificate: []byte("certificate of " + name), Authority: sumOf("authority"), NotAfter: math.MaxInt64,
		},
	}
}

// admin does an operation of the leader's for somebody.
func (tr *driver) admin(op *storepb.Op) step {
	return tr.apply(&storepb.Command{Op: op, Caller: &storepb.Caller{Host: "console", Uid: 1000, Gid: 100, Lineage: []*storepb.Process{processOf(1)}}})
}

// trust gives a cluster an authority, a token, a host that is in and one that was revoked.
func (tr *driver) trust() {
	tr.tb.Helper()
	for _, op := range []*storepb.Op{
		opOf(&storepb.SetCluster{Id: "c"}),
		opOf(&storepb.AddAuthority{
			Certificate: []byte("authority"), SealedKey: []byte("sealed key"), CrossCertificate: []byte("x"),
			Shares: []*storepb.SealShare{{KeyHash: bytes.Repeat([]byte("k"), 32), Share: []byte("share")}},
		}),
		opOf(tokenFor("t", storepb.Role_CLIENT, math.MaxInt64)),
		opOf(hostFor("in", storepb.Role_CLIENT, "key", "t")), opOf(hostFor("out", storepb.Role_CLIENT, "other", "t")),
		opOf(&storepb.RevokeHost{Name: "out"}),
	} {
		tr.admin(op).ok()
	}
}

func TestAdministrativeActsAreTold(t *testing.T) {
	tr := newDriver(t)
	authority := func(name string) *storepb.Op {
		return opOf(&storepb.AddAuthority{Certificate: []byte(name), SealedKey: []byte("sealed key")})
	}
	squashed := tokenFor("squashed", storepb.Role_CLIENT, int64(100*time.Hour))
	squashed.Token.SquashRoot, squashed.Token.Host = true, "in"
	founder := hostFor("first", storepb.Role_SERVER, "first key", "")
	founder.Founding = true
	moved := hostFor("in", storepb.Role_CLIENT, "new key", "squashed")
	for _, test := range []struct {
		op    *storepb.Op
		event string // empty: none
		host  string
		words string
	}{
		{opOf(&storepb.SetCluster{Id: "c"}), "cluster_begun", "", ""},
		{opOf(&storepb.SetCluster{Id: "c"}), "", "", ""},
		{authority("authority"), "authority_added", "", "authority "},
		{authority("authority"), "", "", ""},
		{opOf(founder), "host_joined", "first", "as the first server"},
		{opOf(founder), "", "", ""},
		{opOf(tokenFor("t", storepb.Role_CLIENT, int64(100*time.Hour))), "token_created", "", "token 74 for a client, uses 2, until 1970-01-05T04:00:00Z"},
		{opOf(tokenFor("t", storepb.Role_CLIENT, int64(100*time.Hour))), "", "", ""},
		{opOf(hostFor("in", storepb.Role_CLIENT, "key", "t")), "host_joined", "in", "as a client, with token 74"},
		{opOf(hostFor("in", storepb.Role_CLIENT, "key", "t")), "", "", ""},
		{opOf(hostFor("in", storepb.Role_CLIENT, "key", "")), "", "", ""},
		{opOf(hostFor("in", storepb.Role_SERVER, "key", "")), "", "", ""},
		{opOf(squashed), "token_created", "in", ", root squashed"},
		{opOf(moved), "host_joined", "in", ", root squashed"},
		{opOf(&storepb.DeleteToken{Id: []byte("t")}), "token_revoked", "", "token 74"},
		{opOf(&storepb.DeleteToken{Id: []byte("t")}), "", "", ""},
		{opOf(&storepb.RevokeHost{Name: "in"}), "host_revoked", "in", ""},
		{opOf(&storepb.RevokeHost{Name: "in"}), "", "", ""},
		{authority("newer"), "authority_added", "", "authority "},
		{opOf(&storepb.DropAuthority{Fingerprint: sumOf("authority")}), "", "", ""},
		{opOf(&storepb.RevokeHost{Name: "first"}), "host_revoked", "first", ""},
		{opOf(&storepb.DropAuthority{Fingerprint: sumOf("authority")}), "authority_dropped", "", "authority "},
		{opOf(&storepb.NoteRefusal{Address: "10.0.0.1:2", Name: "x", Reason: "the join token is used up"}), "join_refused", "x", "from 10.0.0.1:2: the join token"},
		{opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "a*", Guard: "host", StaleAfter: int64(time.Minute)}}), "rule_set", "", `rule "a*" guard=host stale-after=1m0s`},
		{opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "a*", Guard: "host", StaleAfter: int64(time.Minute)}}), "", "", ""},
		{opOf(&storepb.DeleteRule{Pattern: "a*"}), "rule_deleted", "", `rule "a*"`},
		{opOf(&storepb.DeleteRule{Pattern: "a*"}), "", "", ""},
		{opOf(&storepb.SetMember{Member: &storepb.Member{Id: "i", Name: "n", Address: "a:1"}}), "member_added", "n", "a:1"},
		{opOf(&storepb.SetMember{Member: &storepb.Member{Id: "i", Name: "n", Address: "a:2"}}), "", "", ""},
		{opOf(&storepb.RemoveMember{Id: "i"}), "member_removed", "n", "id i"},
		{opOf(&storepb.RemoveMember{Id: "i"}), "", "", ""},
	} {
		last := tr.ns.LastEvent()
		tr.admin(test.op)
		events := tr.eventsSince(last)
		if test.event == "" {
			require.Empty(t, events, "%v", test.op)
			continue
		}
		require.Len(t, events, 1, "%v", test.op)
		e := events[0]
		require.Equal(t, []string{test.event, test.host}, []string{e.GetEvent(), e.GetHost()})
		require.Contains(t, e.GetReason(), test.words)
		if test.event != "join_refused" && test.event != "cluster_begun" {
			require.True(t, proto.Equal(&storepb.Caller{Host: "console", Uid: 1000, Gid: 100}, e.GetBy()), "%v", e)
		}
	}
	requireConsistent(t, tr.ns)
	text := snapshotBytes(t, tr.ns.Snapshot())
	require.Equal(t, tr.ns.Snapshot().Hash(), restored(t, text).Snapshot().Hash())
}

// TestNothingSecretIsTold looks for a sealed key and for hashes of secrets in all that can be asked.
func TestNothingSecretIsTold(t *testing.T) {
	tr := newDriver(t)
	tr.trust()
	secrets := [][]byte{[]byte("sealed key"), sumOf("secret of t")}
	kinds := new(storepb.Query).ProtoReflect().Descriptor().Oneofs().Get(0).Fields()
	answered := 0
	for i := range kinds.Len() {
		query := new(storepb.Query).ProtoReflect()
		query.Set(kinds.Get(i), query.NewField(kinds.Get(i)))
		asked := query.Interface().(*storepb.Query)
		switch q := asked.GetQuery().(type) {
		case *storepb.Query_GetAdmission:
			q.GetAdmission.Name = "in"
		case *storepb.Query_ListEvents:
			q.ListEvents.Viewer = root
		}
		result := tr.ns.Query(asked)
		data, err := proto.Marshal(result)
		require.NoError(t, err)
		answered += len(result.GetAuthorities()) + len(result.GetTokens()) + len(result.GetAdmissions())
		for _, secret := range secrets {
			require.False(t, bytes.Contains(data, secret), "%v: %v", asked, result)
		}
	}
	require.Equal(t, 1+1+1+2, answered)
	for _, secret := range secrets {
		require.True(t, bytes.Contains(snapshotBytes(t, tr.ns.Snapshot()), secret), "it is kept")
	}
	require.Equal(t, "sealed key", string(tr.ns.SigningAuthority().GetSealedKey()))
}

func TestSessionsDecideNothingOfTrust(t *testing.T) {
	tr := newDriver(t)
	tr.trust()
	before := trustRecords(tr.ns)
	for _, op := range []*storepb.Op{
		opOf(&storepb.SetCluster{Id: "c"}), opOf(&storepb.AddAuthority{Certificate: []byte("mine"), SealedKey: []byte("k")}),
		opOf(tokenFor("mine", storepb.Role_SERVER, math.MaxInt64)), opOf(&storepb.DeleteToken{Id: []byte("t")}),
		opOf(hostFor("in", storepb.Role_CLIENT, "key", "")), opOf(&storepb.RevokeHost{Name: "in"}), opOf(&storepb.NoteRefusal{}),
	} {
		tr.do(here, op).is(storepb.Code_UNKNOWN_COMMAND)
	}
	require.Equal(t, before, trustRecords(tr.ns))
	requireHash(t, tr.ns)
	require.NoError(t, tr.ns.Admitted("in", storepb.Role_CLIENT, sumOf("key")))
}

func TestAdmissionsCanBeAsked(t *testing.T) {
	tr := newDriver(t)
	tr.trust()
	require.Equal(t, "c", tr.ns.Query(&storepb.Query{Query: &storepb.Query_GetCluster{}}).GetCluster())
	require.Equal(t, "c", tr.ns.Cluster())
	get := func(name string) step {
		return step{tr.ns.Query(&storepb.Query{Query: &storepb.Query_GetAdmission{GetAdmission: &storepb.GetAdmission{Name: name}}}), t}
	}
	require.Equal(t, "certificate of in", string(get("in").ok().GetAdmissions()[0].GetCertificate()))
	get("nobody").is(storepb.Code_NOT_FOUND)
	var names []string
	for after := ""; ; {
		page := tr.ns.Query(&storepb.Query{Query: &storepb.Query_ListAdmissions{ListAdmissions: &storepb.ListAdmissions{After: after, Limit: 1}}}).GetAdmissions()
		if len(page) == 0 {
			break
		}
		require.Len(t, page, 1)
		require.Empty(t, page[0].GetCertificate())
		after = page[0].GetName()
		names = append(names, after)
	}
	require.Equal(t, []string{"in", "out"}, names)
	require.NotZero(t, tr.ns.Admission("out").GetRevoked())
	require.NoError(t, tr.ns.Admitted("in", storepb.Role_CLIENT, sumOf("key")))
	require.ErrorIs(t, tr.ns.Admitted("out", storepb.Role_CLIENT, sumOf("other")), trust.ErrRevoked)
	require.EqualValues(t, tr.index, tr.ns.LastRevocation())
	again := restored(t, snapshotBytes(t, tr.ns.Snapshot()))
	require.Equal(t, tr.ns.LastRevocation(), again.LastRevocation())
	require.ErrorIs(t, again.Admitted("out", storepb.Role_CLIENT, sumOf("other")), trust.ErrRevoked)
}

func TestTickDropsExpiredTokens(t *testing.T) {
	tr := newDriver(t)
	tr.trust()
	expires := tr.now + int64(time.Hour)
	tr.admin(opOf(tokenFor("soon", storepb.Role_CLIENT, expires))).ok()
	require.False(t, tr.ns.Due(expires-1))
	require.Equal(t, expires, tr.ns.NextDue())
	require.True(t, tr.ns.Due(expires))
	tr.tick(time.Hour)
	require.Len(t, tr.ns.Tokens(), 1)
	require.EqualValues(t, int64(math.MaxInt64), tr.ns.NextDue())
}

func TestLongRefusalIsCutBetweenLetters(t *testing.T) {
	tr := newDriver(t)
	tr.admin(opOf(&storepb.NoteRefusal{Reason: strings.Repeat("a", maxRefusal-1) + "é"})).ok()
	events := tr.eventsSince(0)
	require.True(t, strings.HasSuffix(events[0].GetReason(), ": "+strings.Repeat("a", maxRefusal-1)))
	restored(t, snapshotBytes(t, tr.ns.Snapshot()))
}

// BenchmarkAdmitted is what a server asks for each handshake.
func BenchmarkAdmitted(b *testing.B) {
	ns := New()
	ns.Apply(1, &storepb.Command{Op: opOf(&storepb.AddAuthority{Certificate: []byte("authority"), SealedKey: []byte("k")})})
	token := tokenFor("t", storepb.Role_CLIENT, math.MaxInt64)
	token.Token.Uses = math.MaxUint32
	ns.Apply(2, &storepb.Command{Op: opOf(token)})
	for i := range 10_000 {
		result := ns.Apply(ids.Index(3+i), &storepb.Command{Op: opOf(hostFor(nameOf(i), storepb.Role_CLIENT, nameOf(i), "t"))})
		require.Equal(b, storepb.Code_OK, result.GetCode(), "%v", result)
	}
	key := sumOf(nameOf(5000))
	for b.Loop() {
		if err := ns.Admitted(nameOf(5000), storepb.Role_CLIENT, key); err != nil {
			b.Fatal(err)
		}
	}
}

func trustRecords(ns *Namespace) (records int) {
	for _, table := range ns.trust.Tables() {
		records += table.Len()
	}
	return records
}
