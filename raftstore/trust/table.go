// Package trust is the table of a cluster's authorities, join tokens and admitted hosts.
//
// The hash of its key identifies a host, whatever its certificate. A host is admitted with a token, once for
// each use of the token. It renews its certificate with its known key as often as it likes. A revoked key is
// never admitted again. The same holds for a server's former key after its admission with another, unless
// other hosts had it too. The table keeps the last [MaxRevoked] keys. An older one could be admitted only
// with a new token, as any other key. But other servers accept it until its certificate expires, as any
// unknown key.
//
// A table checks no signature and knows no clock. The proposer of an admission has verified the certificate,
// and each command brings index and time ([Table.Begin]). The same calls give the same table on every node.
// Messages in a table are never modified.
package trust

import (
	"math"
	"slices"

	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Limits of a table.
const (
	MaxAuthorities = 16
	MaxShares      = 1000 // of a seal key: servers
	MaxTokens      = 1000
	MaxHosts       = 100_000 // revoked ones included, which make room for others
	MaxRevoked     = 100_000
)

// Table holds the authorities, tokens and hosts of a cluster. It is not safe for concurrent use.
type Table struct {
	index ids.Index
	now   int64

	cluster        string
	earlier        []string                                         // see GoesOnFor
	lastRevocation ids.Index                                        // see LastRevocation
	authorities    *digest.Map[ids.Index, *storepb.AuthorityRecord] // by index of their addition
	tokens         *digest.Map[string, *storepb.TokenRecord]        // by id
	nextExpiry     int64                                            // of a token
	hosts          *digest.Map[string, *storepb.Admission]          // by name
	revoked        *digest.Map[string, ids.Index]                   // keys, by their hash
	revocations    *btree.Map[ids.Index, string]                    // the same by index of the revocation
}

// New returns an empty table with its records in a digest.
func New(d *digest.Digest) *Table {
	return &Table{
		authorities: digest.NewMap(d, authorityValue), tokens: digest.NewMap(d, tokenValue),
		nextExpiry: math.MaxInt64, hosts: digest.NewMap(d, hostValue),
		revoked: digest.NewMap(d, keyValue), revocations: new(btree.Map[ids.Index, string]),
	}
}

// Cluster returns the id of the cluster; empty: none.
func (t *Table) Cluster() string { return t.cluster }

// GoesOnFor reports whether the cluster continues, directly or indirectly, from the state of the cluster with
// this id.
func (t *Table) GoesOnFor(id string) bool { return slices.Contains(t.earlier, id) }

// Earlier returns the ids of the clusters this one continues.
func (t *Table) Earlier() []string { return t.earlier }

// SetCluster sets the id of the cluster, unless it has one.
func (t *Table) SetCluster(id string) *storepb.Result {
	if id == "" || len(id) > maxName {
		return refuse(storepb.Code_INVALID, "the id of a cluster has 1 to 255 bytes")
	}
	if t.cluster == "" {
		t.cluster = id
	}
	return &storepb.Result{Cluster: t.cluster}
}

// LastRevocation returns the index of the last command that ended or replaced an admission. Servers check
// their open connections again after each change of it.
func (t *Table) LastRevocation() ids.Index { return t.lastRevocation }

// Frozen returns a copy in constant time, for Tables, Cluster, Earlier and LastRevocation only.
func (t *Table) Frozen() *Table {
	return &Table{
		cluster: t.cluster, earlier: t.earlier, lastRevocation: t.lastRevocation, authorities: t.authorities.Copy(), tokens: t.tokens.Copy(), hosts: t.hosts.Copy(),
		revoked: t.revoked.Copy(),
	}
}

func refuse(code storepb.Code, message string) *storepb.Result {
	return &storepb.Result{Code: code, Message: message}
}

// Limits in bytes, which keep snapshots readable.
const (
	maxName        = 255
	maxTokenID     = 64
	maxCertificate = 8 << 10 // or a sealed key
	maxShare       = 512
)
