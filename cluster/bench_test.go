package cluster

import (
	"testing"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// BenchmarkClient measures queries and commands of a client at the leader and at a follower of three
// nodes in one process, without a mount:
//
//	go test ./cluster -run '^$' -bench Client
func BenchmarkClient(b *testing.B) {
	nodes := startNodes(b, 3)
	for i, at := range []string{"leader", "follower"} {
		client := openTestClient(b, nodes[i], "")
		b.Run("query/"+at, func(b *testing.B) {
			for b.Loop() {
				lookup(b, client, "lock")
			}
		})
		b.Run("commands/"+at, func(b *testing.B) {
			for b.Loop() {
				mutate(b, client, createOp("lock"))
				mutate(b, client, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{
					Parent: namespace.RootIno, Name: []byte("lock"),
				}}})
			}
		})
	}
}
