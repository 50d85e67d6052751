package trust

import (
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Records of the tables, for the digest.
type (
	authorityRecord struct{ *storepb.AuthorityRecord }
	tokenRecord     struct{ *storepb.TokenRecord }
	hostRecord      struct{ *storepb.Admission }
	revokedKey      struct {
		hash  string
		index ids.Index
	}
)

func authorityValue(_ ids.Index, m *storepb.AuthorityRecord) digest.Value { return authorityRecord{m} }
func tokenValue(_ string, m *storepb.TokenRecord) digest.Value            { return tokenRecord{m} }
func hostValue(_ string, m *storepb.Admission) digest.Value               { return hostRecord{m} }
func keyValue(hash string, index ids.Index) digest.Value                  { return revokedKey{hash, index} }

// Record implements digest.Value.
func (m authorityRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Authority{Authority: m.AuthorityRecord}}
}

// Record implements digest.Value.
func (m tokenRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Token{Token: m.TokenRecord}}
}

// Record implements digest.Value.
func (m hostRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Admission{Admission: m.Admission}}
}

// Record implements digest.Value.
func (k revokedKey) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_RevokedKey{RevokedKey: &storepb.RevokedKey{KeyHash: []byte(k.hash), Index: uint64(k.index)}}}
}
