package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestACommandCarriesItsCallersHost has a host say that it is another one, whose lock only that may remove.
func TestACommandCarriesItsCallersHost(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	web1, _ := join(t, node, "web1")
	web2, _ := join(t, node, "web2")
	made := createOp("lock")
	made.GetCreate().Content = []byte("held")
	made.GetCreate().Facts = &storepb.Facts{Format: storepb.Format_TOWER, Holder: "a", Host: "web1", Guard: storepb.Guard_HOST}
	removed := &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte("lock")}}}
	for i, does := range []struct {
		as   *identity.Credentials
		op   *storepb.Op
		want storepb.Code
	}{{web1, made, storepb.Code_OK}, {web2, removed, storepb.Code_BUSY}, {web1, removed, storepb.Code_OK}} {
		session := uint64(100 + i)
		caller := callerAs(t, node, does.as)
		open := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: does.as.Name().Host, BootId: "b", Started: 1}}}
		require.Equal(t, storepb.Code_OK, execute(t, caller, &storepb.Command{Session: session, Op: open}))
		says := &storepb.Caller{Host: "web1"}
		require.Equal(t, does.want, execute(t, caller, &storepb.Command{Session: session, Seq: 1, Caller: says, Op: does.op}))
	}
}

func execute(t testing.TB, caller rpc.Node, cmd *storepb.Command) storepb.Code {
	t.Helper()
	reply, err := caller.Execute(t.Context(), &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: cmd}})
	require.NoError(t, err)
	require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome())
	return reply.GetResult().GetCode()
}

func TestARevokedHostIsNotAdmitted(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	web, _ := join(t, node, "web1")
	standing := func() identity.Status {
		return node.security.verifier.Status(web.Name(), identity.KeyHashOf(web.Leaf()))
	}
	require.Equal(t, identity.Admitted, standing())
	change(t, node, revokeHost("web1"))
	require.Equal(t, identity.Revoked, standing())
}
