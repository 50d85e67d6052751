package trust

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

const (
	server = storepb.Role_SERVER
	client = storepb.Role_CLIENT
)

func TestAdmittedPeers(t *testing.T) {
	put := func(token *storepb.JoinToken) func(*driver) {
		return func(d *driver) { requireCode(d.tb, storepb.Code_OK, d.put(token)) }
	}
	in := func(name string, role storepb.Role, key, token string) func(*driver) {
		return func(d *driver) { requireCode(d.tb, storepb.Code_OK, d.admit(name, role, key, token)) }
	}
	for name, test := range map[string]struct {
		before []func(*driver)
		op     *storepb.AdmitHost
		code   storepb.Code
		words  string
		uses   int // left of token t; -1: it is not there
	}{
		"with a token":  {[]func(*driver){put(tokenOf("t", client, 2))}, admitOf("a", client, "k", "t"), 0, "", 1},
		"without one":   {nil, admitOf("a", client, "k", ""), storepb.Code_NOT_PERMITTED, "no host \"a\" is known by this key", -1},
		"unknown token": {nil, admitOf("a", client, "k", "t"), storepb.Code_NOT_PERMITTED, "not known", -1},
		"founder":       {nil, &storepb.AdmitHost{Host: admitOf("a", server, "k", "").GetHost(), Founding: true}, 0, "", -1},
		"founder that is a client": {
			nil, &storepb.AdmitHost{Host: admitOf("a", client, "k", "").GetHost(), Founding: true}, storepb.Code_INVALID, "only a server", -1,
		},
		"founder again": {
			[]func(*driver){put(tokenOf("t", server, 1)), in("a", server, "k", "t")},
			&storepb.AdmitHost{Host: admitOf("a", server, "k", "").GetHost(), Founding: true}, 0, "", 0,
		},
		"founder with another key": {
			[]func(*driver){put(tokenOf("t", server, 1)), in("a", server, "k", "t")},
			&storepb.AdmitHost{Host: admitOf("a", server, "other", "").GetHost(), Founding: true}, 0, "", 0,
		},
		"wrong secret": {
			[]func(*driver){put(tokenOf("t", client, 1))},
			&storepb.AdmitHost{TokenId: []byte("t"), SecretHash: hashOf("x"), Host: admitOf("a", client, "k", "").GetHost()},
			storepb.Code_NOT_PERMITTED, "secret", 1,
		},
		"no secret": {
			[]func(*driver){put(tokenOf("t", client, 1))},
			&storepb.AdmitHost{TokenId: []byte("t"), Host: admitOf("a", client, "k", "").GetHost()}, storepb.Code_NOT_PERMITTED, "secret", 1,
		},
		"expired": {
			[]func(*driver){put(tokenOf("t", client, 1)), func(d *driver) { d.wait(time.Hour) }},
			admitOf("a", client, "k", "t"), storepb.Code_NOT_PERMITTED, "expired", -1,
		},
		"revoked token": {
			[]func(*driver){put(tokenOf("t", client, 1)), func(d *driver) { d.DeleteToken([]byte("t")) }},
			admitOf("a", client, "k", "t"), storepb.Code_NOT_PERMITTED, "revoked", -1,
		},
		"used up": {
			[]func(*driver){put(tokenOf("t", client, 1)), in("a", client, "k", "t")},
			admitOf("b", client, "other", "t"), storepb.Code_NOT_PERMITTED, "used up", 0,
		},
		"reply lost": {
			[]func(*driver){put(tokenOf("t", client, 1)), in("a", client, "k", "t")}, admitOf("a", client, "k", "t"), 0, "", 0,
		},
		"reply lost and token expired": {
			[]func(*driver){put(tokenOf("t", client, 1)), in("a", client, "k", "t"), func(d *driver) { d.wait(time.Hour) }},
			admitOf("a", client, "k", "t"), 0, "", -1,
		},
		"of another role": {
			[]func(*driver){put(tokenOf("t", client, 1))}, admitOf("a", server, "k", "t"), storepb.Code_NOT_PERMITTED, "for a client", 1,
		},
		"of another host": {
			[]func(*driver){put(&storepb.JoinToken{Id: []byte("t"), Role: client, Host: "b", Uses: 1, Expires: int64(time.Hour)})},
			admitOf("a", client, "k", "t"), storepb.Code_NOT_PERMITTED, `for the host "b"`, 1,
		},
		"name taken": {
			[]func(*driver){put(tokenOf("t", client, 2)), in("a", client, "k", "t")},
			admitOf("a", client, "other", "t"), storepb.Code_BUSY, "another key", 1,
		},
		"name taken and token for it": {
			[]func(*driver){
				put(tokenOf("u", client, 1)), in("a", client, "k", "u"),
				put(&storepb.JoinToken{Id: []byte("t"), Role: client, Host: "a", Uses: 2, Expires: int64(time.Hour)}),
			},
			admitOf("a", client, "other", "t"), 0, "", 1,
		},
		"name of a revoked host": {
			[]func(*driver){put(tokenOf("t", client, 2)), in("a", client, "k", "t"), func(d *driver) { d.revoke("a") }},
			admitOf("a", client, "other", "t"), 0, "", 0,
		},
		"revoked key": {
			[]func(*driver){put(tokenOf("t", client, 2)), in("a", client, "k", "t"), func(d *driver) { d.revoke("a") }},
			admitOf("a", client, "k", "t"), storepb.Code_NOT_PERMITTED, "revoked", 1,
		},
		"revoked key under another name": {
			[]func(*driver){put(tokenOf("t", client, 2)), in("a", client, "k", "t"), func(d *driver) { d.revoke("a") }},
			admitOf("b", client, "k", "t"), storepb.Code_NOT_PERMITTED, "revoked", 1,
		},
		"renewal": {
			[]func(*driver){put(tokenOf("t", client, 1)), in("a", client, "k", "t")}, admitOf("a", client, "k", ""), 0, "", 0,
		},
		"renewal with another key": {
			[]func(*driver){put(tokenOf("t", client, 1)), in("a", client, "k", "t")},
			admitOf("a", client, "other", ""), storepb.Code_NOT_PERMITTED, "no host \"a\" is known by this key", 0,
		},
		"renewal of a revoked host with another key": {
			[]func(*driver){put(tokenOf("t", client, 1)), in("a", client, "k", "t"), func(d *driver) { d.revoke("a") }},
			admitOf("a", server, "other", ""), storepb.Code_NOT_PERMITTED, "no host \"a\" is known by this key", 0,
		},
		"renewal as a server": {
			[]func(*driver){put(tokenOf("t", client, 1)), in("a", client, "k", "t")},
			admitOf("a", server, "k", ""), storepb.Code_NOT_PERMITTED, "known as a client", 0,
		},
		"another token and the same key": {
			[]func(*driver){put(tokenOf("u", client, 1)), in("a", client, "k", "u"), put(tokenOf("t", server, 2))},
			admitOf("a", server, "k", "t"), 0, "", 1,
		},
		"unknown authority": {
			[]func(*driver){put(tokenOf("t", client, 1))},
			&storepb.AdmitHost{TokenId: []byte("t"), SecretHash: hashOf("secret of t"), Host: &storepb.Admission{
				Name: "a", Role: client, KeyHash: hashOf("k"), Certificate: []byte("c"), Authority: fingerprintOf("other"),
			}},
			storepb.Code_INVALID, "authority", 1,
		},
		"no name":    {nil, admitOf("", client, "k", ""), storepb.Code_INVALID, "name", -1},
		"long name":  {nil, admitOf(strings.Repeat("n", 256), client, "k", ""), storepb.Code_INVALID, "name", -1},
		"no role":    {nil, admitOf("a", 0, "k", ""), storepb.Code_INVALID, "server or a client", -1},
		"nothing":    {nil, nil, storepb.Code_INVALID, "name", -1},
		"empty host": {nil, &storepb.AdmitHost{Host: &storepb.Admission{Name: "a", Role: client}}, storepb.Code_INVALID, "SHA-256", -1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			for _, step := range test.before {
				step(d)
			}
			host := test.op.GetHost()
			before := d.Host(host.GetName())
			d.next()
			result, _ := d.Admit(test.op)
			requireCode(t, test.code, result)
			require.Contains(t, result.GetMessage(), test.words)
			require.Equal(t, test.uses, d.usesLeft("t"))
			if test.code == storepb.Code_OK {
				require.NoError(t, d.Admitted(host.GetName(), host.GetRole(), host.GetKeyHash()))
				require.Equal(t, host.GetCertificate(), result.GetAdmissions()[0].GetCertificate())
			} else {
				require.Same(t, before, d.Host(host.GetName()))
			}
			requireRestorable(t, d.Table)
		})
	}
}

// TestKeysOfServersAreReplacedForGood tells what becomes of a key whose host has come back with another one.
func TestKeysOfServersAreReplacedForGood(t *testing.T) {
	for _, role := range []storepb.Role{server, client} {
		d := newDriver(t)
		requireCode(t, storepb.Code_OK, d.put(tokenOf("t", role, 2)))
		requireCode(t, storepb.Code_OK, d.put(&storepb.JoinToken{Id: []byte("again"), Role: role, Host: "a", Uses: 9, Expires: int64(time.Hour)}))
		requireCode(t, storepb.Code_OK, d.admit("a", role, "first", "t"))
		requireCode(t, storepb.Code_OK, d.admit("a", role, "second", "again"))
		want := map[storepb.Role]error{server: ErrRevoked, client: ErrOtherKey}[role]
		require.ErrorIs(t, d.isAdmitted("a", role, "first"), want)
		require.NoError(t, d.isAdmitted("a", role, "second"))

		requireCode(t, storepb.Code_OK, d.admit("b", role, "second", "t"))
		requireCode(t, storepb.Code_OK, d.admit("a", role, "third", "again"))
		require.NoError(t, d.isAdmitted("b", role, "second"), "somebody else has it, too")
		requireRestorable(t, d.Table)
	}
}

func TestTokenDecidesWhatAHostIs(t *testing.T) {
	d := newDriver(t)
	token := tokenOf("t", client, 5)
	token.SquashRoot = true
	requireCode(t, storepb.Code_OK, d.put(token))
	op := admitOf("a", client, "k", "t")
	op.Host.Admitted, op.Host.Revoked = 77, 77
	d.next()
	result, joined := d.Admit(op)
	require.True(t, joined)
	host := result.GetAdmissions()[0]
	require.True(t, host.GetSquashRoot())
	require.Equal(t, []int64{d.now, 0}, []int64{host.GetAdmitted(), host.GetRevoked()})

	renewal := admitOf("a", client, "k", "")
	renewal.Host.Certificate, renewal.Host.NotAfter = []byte("newer"), 99
	d.next()
	result, joined = d.Admit(renewal)
	require.False(t, joined)
	want := proto.Clone(host).(*storepb.Admission)
	want.Certificate, want.NotAfter = []byte("newer"), 99
	require.True(t, proto.Equal(want, result.GetAdmissions()[0]), "%v", result)
}

func TestRevokedHostIsShutOut(t *testing.T) {
	d := newDriver(t)
	d.put(tokenOf("t", client, 9))
	d.admit("a", client, "k", "t")
	d.admit("same", client, "k", "t")
	d.admit("b", client, "other", "t")
	require.Zero(t, d.LastRevocation())
	require.NoError(t, d.isAdmitted("a", client, "k"))
	require.ErrorIs(t, d.isAdmitted("a", server, "k"), ErrOtherRole)
	require.ErrorIs(t, d.isAdmitted("a", client, "other"), ErrOtherKey)
	require.ErrorIs(t, d.isAdmitted("nobody", client, "k"), ErrUnknown)

	requireCode(t, storepb.Code_OK, d.revoke("a"))
	require.Equal(t, d.index, d.LastRevocation())
	for _, name := range []string{"a", "same", "b", "nobody"} {
		require.ErrorIs(t, d.isAdmitted(name, client, "k"), ErrRevoked)
	}
	require.NoError(t, d.isAdmitted("b", client, "other"))
	require.ErrorIs(t, d.isAdmitted("a", client, "new"), ErrOtherKey, "it may have come back with that, as others know who are ahead")
	requireCode(t, storepb.Code_NOT_PERMITTED, d.admit("same", client, "k", ""))
	at := d.LastRevocation()
	requireCode(t, storepb.Code_OK, d.revoke("a"))
	require.Equal(t, at, d.LastRevocation(), "it is done once")
	requireCode(t, storepb.Code_NOT_FOUND, d.revoke("nobody"))

	requireCode(t, storepb.Code_OK, d.admit("a", client, "new", "t"))
	require.NoError(t, d.isAdmitted("a", client, "new"))
	require.ErrorIs(t, d.isAdmitted("a", client, "k"), ErrRevoked)
	requireRestorable(t, d.Table)
}

func TestTokens(t *testing.T) {
	d := newDriver(t)
	require.EqualValues(t, int64(1<<63-1), d.NextDue())
	requireCode(t, storepb.Code_OK, d.put(tokenOf("t", client, 2)))
	d.admit("a", client, "k", "t")
	requireCode(t, storepb.Code_OK, d.put(tokenOf("t", client, 2)))
	require.Equal(t, 1, d.usesLeft("t"), "asked again, it is not made again")
	d.next()
	result, _ := d.PutToken(&storepb.PutToken{Token: tokenOf("t", client, 2), SecretHash: hashOf("other")})
	requireCode(t, storepb.Code_EXISTS, result)
	for _, wrong := range []*storepb.JoinToken{
		{}, tokenOf("", client, 1), tokenOf("u", client, 0), tokenOf("u", 0, 1), tokenOf("u", 9, 1), tokenOf(strings.Repeat("u", 65), client, 1),
		{Id: []byte("u"), Role: client, Uses: 1, Expires: d.now}, {Id: []byte("u"), Role: client, Uses: 1},
		{Id: []byte("u"), Role: client, Uses: 1, Expires: int64(time.Hour), Host: strings.Repeat("h", 256)},
	} {
		requireCode(t, storepb.Code_INVALID, d.put(wrong))
	}
	result, _ = d.PutToken(nil)
	requireCode(t, storepb.Code_INVALID, result)
	result, _ = d.PutToken(&storepb.PutToken{Token: tokenOf("u", client, 1), SecretHash: []byte("short")})
	requireCode(t, storepb.Code_INVALID, result)

	late := tokenOf("late", client, 1)
	late.Expires = int64(2 * time.Hour)
	requireCode(t, storepb.Code_OK, d.put(late))
	require.EqualValues(t, time.Hour, d.NextDue())
	d.wait(time.Hour)
	require.Equal(t, -1, d.usesLeft("t"))
	require.EqualValues(t, 2*time.Hour, d.NextDue())
	requireCode(t, storepb.Code_OK, d.DeleteToken([]byte("late")))
	requireCode(t, storepb.Code_NOT_FOUND, d.DeleteToken([]byte("late")))
	require.Zero(t, d.tokens.Len())
}

func TestAuthoritiesAreReplaced(t *testing.T) {
	d := newDriver(t)
	d.put(tokenOf("t", client, 9))
	d.admit("a", client, "k", "t")
	d.admit("expired", client, "k2", "t")
	old := proto.Clone(d.Host("expired")).(*storepb.Admission)
	old.NotAfter = d.now
	d.hosts.Set("expired", old)

	requireCode(t, storepb.Code_BUSY, d.DropAuthority(fingerprintOf("ca")))
	d.next()
	again := authorityOf("ca")
	again.SealedKey, again.CrossCertificate, again.Shares = []byte("sealed anew"), []byte("cross"), sharesOf("k1", "k2")
	result, added := d.AddAuthority(again)
	require.False(t, added)
	require.Equal(t, []byte("cross"), result.GetAuthorities()[0].GetCrossCertificate())
	require.Equal(t, []byte("sealed anew"), d.Signing().GetSealedKey())
	require.Len(t, d.Signing().GetShares(), 2)
	for _, wrong := range [][]*storepb.SealShare{
		make([]*storepb.SealShare, MaxShares+1), {{KeyHash: []byte("short"), Share: []byte("share")}}, {{KeyHash: hashOf("k1")}},
		{{KeyHash: hashOf("k1"), Share: make([]byte, maxShare+1)}},
	} {
		again.Shares = wrong
		result, _ = d.AddAuthority(again)
		requireCode(t, storepb.Code_INVALID, result)
	}

	d.next()
	result, added = d.AddAuthority(authorityOf("new"))
	require.True(t, added)
	require.Equal(t, fingerprintOf("new"), result.GetAuthorities()[0].GetFingerprint())
	require.Equal(t, fingerprintOf("new"), d.Authorities()[0].GetFingerprint())
	require.Equal(t, fingerprintOf("new"), d.Signing().GetAuthority().GetFingerprint())
	d.next()
	_, added = d.AddAuthority(authorityOf("ca"))
	require.False(t, added)
	require.Equal(t, fingerprintOf("new"), d.Signing().GetAuthority().GetFingerprint(), "it does not sign again")

	require.Empty(t, d.Obsolete(d.now))
	requireCode(t, storepb.Code_BUSY, d.DropAuthority(fingerprintOf("ca")))
	renewal := admitOf("a", client, "k", "")
	renewal.Host.Authority = fingerprintOf("new")
	d.next()
	d.Admit(renewal)
	require.Equal(t, [][]byte{fingerprintOf("ca")}, d.Obsolete(d.now))
	d.next()
	requireCode(t, storepb.Code_OK, d.DropAuthority(fingerprintOf("ca")))
	require.Equal(t, d.index, d.LastRevocation())
	requireCode(t, storepb.Code_NOT_FOUND, d.DropAuthority(fingerprintOf("ca")))
	requireCode(t, storepb.Code_BUSY, d.DropAuthority(fingerprintOf("new")))
	requireRestorable(t, d.Table)
}

func TestAuthoritiesGoOneAfterTheOther(t *testing.T) {
	d := newDriver(t)
	d.put(tokenOf("t", client, 1))
	d.admit("a", client, "k", "t")
	for _, name := range []string{"second", "third"} {
		d.next()
		d.AddAuthority(authorityOf(name))
	}
	require.Empty(t, d.Obsolete(d.now), "host a believes the third only by the second")
	d.next()
	requireCode(t, storepb.Code_BUSY, d.DropAuthority(fingerprintOf("second")))
	d.revoke("a")
	require.Equal(t, [][]byte{fingerprintOf("ca"), fingerprintOf("second")}, d.Obsolete(d.now))
	for _, fingerprint := range d.Obsolete(d.now) {
		d.next()
		requireCode(t, storepb.Code_OK, d.DropAuthority(fingerprint))
	}
}

func TestFirstClusterIDStays(t *testing.T) {
	table := New(digest.New())
	requireCode(t, storepb.Code_INVALID, table.SetCluster(""))
	requireCode(t, storepb.Code_INVALID, table.SetCluster(strings.Repeat("x", 256)))
	require.Equal(t, "one", table.SetCluster("one").GetCluster())
	require.Equal(t, "one", table.SetCluster("two").GetCluster())
	require.Equal(t, "one", table.Cluster())
}

func TestLimits(t *testing.T) {
	d := newDriver(t)
	for i := 1; i < MaxAuthorities; i++ {
		d.next()
		_, added := d.AddAuthority(authorityOf(strconv.Itoa(i)))
		require.True(t, added)
	}
	d.next()
	result, _ := d.AddAuthority(authorityOf("one more"))
	requireCode(t, storepb.Code_NO_SPACE, result)

	for i := range MaxTokens {
		requireCode(t, storepb.Code_OK, d.put(tokenOf(strconv.Itoa(i), client, 1<<31)))
	}
	requireCode(t, storepb.Code_NO_SPACE, d.put(tokenOf("one more", client, 1)))

	for i := range MaxHosts {
		d.Begin(d.index+1, d.now)
		name := strconv.Itoa(i)
		result, _ := d.Admit(admitOf(name, client, name, "0"))
		if result.GetCode() != storepb.Code_OK {
			requireCode(t, storepb.Code_OK, result)
		}
	}
	requireCode(t, storepb.Code_NO_SPACE, d.admit("one more", client, "k", "0"))
	require.EqualValues(t, uint32(1<<31-MaxHosts), d.usesLeft("0"), "who does not come in uses up nothing")
	d.revoke("5")
	d.revoke("3")
	requireCode(t, storepb.Code_OK, d.admit("one more", client, "k", "0"))
	require.Nil(t, d.Host("5"), "revoked longest ago")
	require.NotNil(t, d.Host("3"))
	requireCode(t, storepb.Code_NOT_PERMITTED, d.admit("5", client, "5", "0"))

	for i := range MaxRevoked - 2 {
		d.revokeKey(string(hashOf("gone"+strconv.Itoa(i))), indexOf(i))
	}
	require.ErrorIs(t, d.isAdmitted("5", client, "5"), ErrRevoked)
	d.Begin(indexOf(MaxRevoked), d.now)
	d.revoke("7")
	require.Equal(t, []int{MaxRevoked, MaxRevoked}, []int{d.revoked.Len(), d.revocations.Len()})
	require.ErrorIs(t, d.isAdmitted("5", client, "5"), ErrUnknown, "the first that was revoked is forgotten")
	requireCode(t, storepb.Code_NOT_PERMITTED, d.admit("5", client, "5", ""))
	require.ErrorIs(t, d.isAdmitted("7", client, "7"), ErrRevoked)
}

func TestCheckFindsWhatCannotBe(t *testing.T) {
	for name, spoil := range map[string]func(*Table){
		"nothing":             func(*Table) {},
		"cluster id":          func(t *Table) { t.RestoreHeader(strings.Repeat("x", 256), nil, 0) },
		"shut out later":      func(t *Table) { t.RestoreHeader("", nil, t.index+1) },
		"authority":           func(t *Table) { t.RestoreAuthority(&storepb.AuthorityRecord{}) },
		"authority of nobody": func(t *Table) { t.RestoreAuthority(nil) },
		"authority added later": func(t *Table) {
			record := proto.Clone(t.Signing()).(*storepb.AuthorityRecord)
			t.authorities.Delete(1)
			record.AddedIndex = 1 << 40
			t.RestoreAuthority(record)
		},
		"authority twice": func(t *Table) {
			record := proto.Clone(t.Signing()).(*storepb.AuthorityRecord)
			record.AddedIndex++
			t.RestoreAuthority(record)
		},
		"token":         func(t *Table) { t.RestoreToken(&storepb.TokenRecord{}) },
		"host":          func(t *Table) { t.RestoreHost(&storepb.Admission{Name: "x"}) },
		"key":           func(t *Table) { t.RestoreRevoked(&storepb.RevokedKey{KeyHash: []byte("x")}) },
		"revoked later": func(t *Table) { t.RestoreRevoked(&storepb.RevokedKey{KeyHash: hashOf("x"), Index: 1 << 40}) },
		"revoked at once": func(t *Table) {
			t.RestoreRevoked(&storepb.RevokedKey{KeyHash: hashOf("x"), Index: 1})
			t.RestoreRevoked(&storepb.RevokedKey{KeyHash: hashOf("y"), Index: 1})
		},
	} {
		d := newDriver(t)
		d.put(tokenOf("t", client, 9))
		d.admit("a", client, "k", "t")
		spoil(d.Table)
		if err := d.Check(); name == "nothing" {
			require.NoError(t, err)
		} else {
			require.Error(t, err, name)
		}
	}
}
