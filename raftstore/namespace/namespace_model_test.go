package namespace

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestNamespaceAgreesWithModel gives random commands to a namespace and to the model.
func TestNamespaceAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		m := newModelOf(ns)
		g := newGenerator(t, ns)
		steps := 1 + g.below(pick(g, 20, 50, 200))
		for index := uint64(1); index <= uint64(steps); index++ {
			cmd := g.next()
			t.Logf("%d: %v", index, cmd)
			want, refusals := m.apply(index, cmd)
			got := ns.Apply(ids.Index(index), cmd)
			if refusals != nil {
				require.Contains(t, refusals, got.GetCode())
				require.True(t, proto.Equal(&storepb.Result{Code: got.GetCode(), Message: got.GetMessage()}, got),
					"a refusal says nothing else: %v", got)
			} else {
				requireSame(t, want.result, withoutObservations(got))
			}
			m.settle(cmd, got, want)
			requireAgreement(t, m, ns)
			requireConsistent(t, ns)
		}
	})
}

// withoutObservations is what an answer says but for tokens and indexes of the log, of which the model knows nothing.
func withoutObservations(r *storepb.Result) *storepb.Result {
	plain := proto.Clone(r).(*storepb.Result)
	plain.Observations, plain.Index = nil, 0
	return plain
}

func requireSame(t require.TestingT, want, got proto.Message) {
	if !proto.Equal(want, got) {
		require.Fail(t, "messages differ", "want %v\n got %v", want, got)
	}
}

// requireAgreement compares everything that can be asked.
func requireAgreement(t require.TestingT, m *model, ns *Namespace) {
	for _, n := range m.nodes {
		requireNode(t, m, ns, n)
	}
	for _, uid := range []uint32{0, 7, 9} {
		requireSame(t, &storepb.Result{FsStats: m.stats(uid)}, ns.Query(statFs(uid)))
	}
	live := 0
	for _, s := range m.sessions {
		if s.ended == nil {
			live++
		}
	}
	sessions := ns.Query(&storepb.Query{Query: &storepb.Query_ListSessions{}}).GetSessions()
	require.Len(t, sessions, live)
	for _, s := range sessions {
		require.Equal(t, m.sessions[s.GetId()].acked, s.GetAcked())
	}
	require.Len(t, ns.Members(), len(m.members))
	for _, member := range ns.Members() {
		require.Equal(t, m.members[member.GetId()], member.GetName())
	}
}

func requireNode(t require.TestingT, m *model, ns *Namespace, n *node) {
	requireSame(t, &storepb.Result{Attr: m.attr(n), Content: []byte(n.content)}, ns.Query(readOf(n.ino)))
	xattrs := new(storepb.Result)
	for _, x := range ns.Query(xattrsOf(n.ino)).GetXattrs() {
		require.Contains(t, n.xattrs, string(x.GetName()))
		require.Equal(t, n.xattrs[string(x.GetName())], string(x.GetValue()))
		xattrs.Xattrs = append(xattrs.Xattrs, x)
	}
	require.Len(t, xattrs.GetXattrs(), len(n.xattrs))
	require.True(t, slices.IsSortedFunc(xattrs.GetXattrs(), func(a, b *storepb.Xattr) int {
		return slices.Compare(a.GetName(), b.GetName())
	}), "extended attributes in the order of their names")
	if n.is(syscall.S_IFDIR) {
		requireDirectory(t, m, ns, n)
		return
	}
	require.Equal(t, storepb.Code_NOT_DIRECTORY, ns.Query(lookupOf(n.ino, "a")).GetCode())
	require.Equal(t, storepb.Code_NOT_DIRECTORY, ns.Query(readDirOf(n.ino, 0, 0)).GetCode())
}

func requireDirectory(t require.TestingT, m *model, ns *Namespace, n *node) {
	if n.removed != nil {
		require.Equal(t, storepb.Code_NOT_FOUND, ns.Query(lookupOf(n.ino, "a")).GetCode())
		require.Len(t, listing(ns, n.ino, 0), 2)
		return
	}
	entries := listing(ns, n.ino, 3)
	require.Len(t, entries, 2+len(n.names))
	require.Equal(t, []string{".", ".."}, []string{string(entries[0].GetName()), string(entries[1].GetName())})
	require.Equal(t, []uint64{n.ino, m.parent(n).ino}, []uint64{entries[0].GetIno(), entries[1].GetIno()})
	for i, name := range n.listing() {
		at := m.nodes[n.names[name].ino]
		requireSame(t, &storepb.DirEntry{
			Name: []byte(name), Ino: at.ino, Mode: at.mode & syscall.S_IFMT, Cookie: entries[2+i].GetCookie(),
		}, entries[2+i])
		requireSame(t, &storepb.Result{Attr: m.attr(at)}, withoutObservations(ns.Query(lookupOf(n.ino, name))))
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		_, there := n.names[name]
		require.Equal(t, there, ns.Query(lookupOf(n.ino, name)).GetCode() == storepb.Code_OK)
	}
	requireSame(t, &storepb.Result{Attr: m.attr(n)}, ns.Query(lookupOf(n.ino, ".")))
	requireSame(t, &storepb.Result{Attr: m.attr(m.parent(n))}, ns.Query(lookupOf(n.ino, "..")))
}
