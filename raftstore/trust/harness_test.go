package trust

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// driver makes each call a command of its own, one second after the one before.
type driver struct {
	tb testing.TB
	*Table
}

func newDriver(tb testing.TB) *driver {
	d := &driver{tb, New(digest.New())}
	d.next()
	result, added := d.AddAuthority(authorityOf("ca"))
	require.True(tb, added)
	require.Equal(tb, storepb.Code_OK, result.GetCode())
	return d
}

func (d *driver) next() { d.wait(time.Second) }

func (d *driver) wait(span time.Duration) { d.Begin(d.index+1, d.now+int64(span)) }

func (d *driver) put(token *storepb.JoinToken) *storepb.Result {
	d.next()
	result, _ := d.PutToken(&storepb.PutToken{Token: token, SecretHash: hashOf("secret of " + string(token.GetId()))})
	return result
}

// admit has a host with a key come with a token of the driver's, or with none.
func (d *driver) admit(name string, role storepb.Role, key, token string) *storepb.Result {
	d.next()
	result, _ := d.Admit(admitOf(name, role, key, token))
	return result
}

func (d *driver) isAdmitted(name string, role storepb.Role, key string) error {
	return d.Admitted(name, role, hashOf(key))
}

func (d *driver) revoke(name string) *storepb.Result {
	d.next()
	result, _ := d.Revoke(name)
	return result
}

func (d *driver) usesLeft(token string) int {
	for _, t := range d.Tokens() {
		if string(t.GetId()) == token {
			return int(t.GetUses())
		}
	}
	return -1
}

func requireCode(tb testing.TB, code storepb.Code, result *storepb.Result) {
	tb.Helper()
	require.Equal(tb, code, result.GetCode(), "%s", result.GetMessage())
}

func admitOf(name string, role storepb.Role, key, token string) *storepb.AdmitHost {
	op := &storepb.AdmitHost{Host: &storepb.Admission{
		Name: name, Role: role, KeyHash: hashOf(key), Certificate: []byte("certificate of " + name), Authority: fingerprintOf("ca"),
		NotAfter: int64(1000 * time.Hour),
	}}
	if token != "" {
		op.TokenId, op.SecretHash = []byte(token), hashOf("secret of "+token)
	}
	return op
}

func tokenOf(id string, role storepb.Role, uses uint32) *storepb.JoinToken {
	return &storepb.JoinToken{Id: []byte(id), Role: role, Uses: uses, Expires: int64(time.Hour)}
}

func authorityOf(name string) *storepb.AddAuthority {
	return &storepb.AddAuthority{Certificate: []byte("certificate of " + name), SealedKey: []byte("sealed key of " + name)}
}

// sharesOf are shares of a seal key for servers with keys.
func sharesOf(keys ...string) (shares []*storepb.SealShare) {
	for _, key := range keys {
		shares = append(shares, &storepb.SealShare{KeyHash: hashOf(key), Share: []byte("share for " + key)})
	}
	return shares
}

func fingerprintOf(authority string) []byte { return hashOf("certificate of " + authority) }

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// requireRestorable compares a table with what is made of its records.
func requireRestorable(t require.TestingT, table *Table) {
	again := New(digest.New())
	again.Begin(table.index, table.now)
	frozen := table.Frozen()
	again.RestoreHeader(frozen.Cluster(), frozen.Earlier(), frozen.LastRevocation())
	frozen.each(again.restore)
	require.NoError(t, again.Check())
	requireSameRecords(t, table, again)
	require.Equal(t, table.NextDue(), again.NextDue())
	require.Equal(t, table.revocations.Len(), again.revocations.Len())
	require.Equal(t, []any{table.Cluster(), table.LastRevocation()}, []any{again.Cluster(), again.LastRevocation()})
}

func (t *Table) each(visit func(*storepb.Record)) {
	digest.Each(func(v digest.Value) bool {
		visit(v.Record())
		return true
	}, t.Tables()...)
}

func (t *Table) restore(record *storepb.Record) {
	switch r := record.GetRecord().(type) {
	case *storepb.Record_Authority:
		t.RestoreAuthority(r.Authority)
	case *storepb.Record_Token:
		t.RestoreToken(r.Token)
	case *storepb.Record_Admission:
		t.RestoreHost(r.Admission)
	case *storepb.Record_RevokedKey:
		t.RestoreRevoked(r.RevokedKey)
	}
}

func requireSameRecords(t require.TestingT, want, got *Table) {
	records := func(table *Table) (all []*storepb.Record) {
		table.each(func(record *storepb.Record) { all = append(all, record) })
		return all
	}
	left, right := records(want), records(got)
	require.Len(t, right, len(left))
	for i := range left {
		require.True(t, proto.Equal(left[i], right[i]), "%v instead of %v", right[i], left[i])
	}
}

// indexOf is a command's index that no driver has reached.
func indexOf(i int) ids.Index { return ids.Index(1_000_000 + i) }
