// Package trust is the table of who belongs to a cluster: its authorities, the tokens that hosts join with, and the hosts that were let in.
//
// A host is known by the hash of its key, so who has the key of a host is that host, whatever certificate he shows. It comes in with a token,
// once for each use that the token has, and renews its certificate as often as it likes with the key that it is known by. A revoked key is never
// let in again, nor is one that a server had before it came back with another, unless other hosts had it too. The last [MaxRevoked] of them are
// kept: what was revoked before that could only come in with a new token, as any other key could, but a server is heard by other servers with
// it until its certificate ends, as with any key that is not known yet.
//
// A table checks no signature and knows no clock: who proposes an admission has verified the certificate, and index and time come in
// with each command ([Table.Begin]). The same calls give the same table on every node. Messages in a table are never modified.
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
	MaxHosts       = 100_000 // those that are revoked included, which make room for others
	MaxRevoked     = 100_000
)

// Table is the authorities, tokens and hosts of a cluster. It is not safe for concurrent use.
type Table struct {
	index ids.Index
	now   int64

	cluster     string
	earlier     []string                                         // see GoesOnFor
	shutOut     ids.Index                                        // see ShutOut
	authorities *digest.Map[ids.Index, *storepb.AuthorityRecord] // by when they were added
	tokens      *digest.Map[string, *storepb.TokenRecord]        // by id
	nextExpiry  int64                                            // of a token
	hosts       *digest.Map[string, *storepb.Admission]          // by name
	revoked     *digest.Map[string, ids.Index]                   // keys, by their hash
	revocations *btree.Map[ids.Index, string]                    // the same by when
}

// New makes an empty table, whose records are in a digest.
func New(d *digest.Digest) *Table {
	return &Table{
		authorities: digest.NewMap(d, authorityValue), tokens: digest.NewMap(d, tokenValue),
		nextExpiry: math.MaxInt64, hosts: digest.NewMap(d, hostValue),
		revoked: digest.NewMap(d, keyValue), revocations: new(btree.Map[ids.Index, string]),
	}
}

// Cluster is the id of the cluster; empty if it has none.
func (t *Table) Cluster() string { return t.cluster }

// GoesOnFor tells whether the cluster began from the state of the one with this id, at first or second hand.
func (t *Table) GoesOnFor(id string) bool { return slices.Contains(t.earlier, id) }

// Earlier are the ids of the clusters that this one goes on for.
func (t *Table) Earlier() []string { return t.earlier }

// SetCluster gives the cluster its id, unless it has one.
func (t *Table) SetCluster(id string) *storepb.Result {
	if id == "" || len(id) > maxName {
		return refuse(storepb.Code_INVALID, "the id of a cluster has 1 to 255 bytes")
	}
	if t.cluster == "" {
		t.cluster = id
	}
	return &storepb.Result{Cluster: t.cluster}
}

// ShutOut is the index of the last command that shut somebody out who had been let in, or made him something else. Who goes on
// serving somebody looks again when it has changed.
func (t *Table) ShutOut() ids.Index { return t.shutOut }

// Frozen is a copy in constant time, for Tables, Cluster, Earlier and ShutOut only.
func (t *Table) Frozen() *Table {
	return &Table{
		cluster: t.cluster, earlier: t.earlier, shutOut: t.shutOut, authorities: t.authorities.Copy(), tokens: t.tokens.Copy(), hosts: t.hosts.Copy(),
		revoked: t.revoked.Copy(),
	}
}

func refuse(code storepb.Code, message string) *storepb.Result {
	return &storepb.Result{Code: code, Message: message}
}
