package cluster

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

func asUser(t testing.TB, uid uint32, groups ...uint32) context.Context {
	return rpc.WithCaller(t.Context(), rpc.Caller{Role: rpc.RoleUser, UID: uid, GID: uid, Groups: groups})
}

func setRule(pattern string) *clusterpb.ChangeRequest {
	return &clusterpb.ChangeRequest{Op: &storepb.Op{Op: &storepb.Op_SetRule{SetRule: &storepb.SetRule{
		Rule: &storepb.Rule{Pattern: pattern, Guard: "host"},
	}}}, Caller: &storepb.Caller{Host: "a lie", Uid: 0, Pid: 12}}
}

func TestTheProxyKnowsItsCallers(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	leader := leaderOf(t, nodes)
	follower := nodes[0]
	if follower == leader {
		follower = nodes[1]
	}
	web, _ := join(t, leader, "web1")
	mount := mountAt(t, web)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
	mutate(t, mount.Client, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: 1, Name: []byte("hidden.lock"), Mode: 0o100600, Exclusive: true,
	}}})
	onMount := NewProxy("web1", web.Servers(), mount.keeper.Security(), quietLogger())
	defer onMount.Close()

	for name, relay := range map[string]*Proxy{"leader": leader.Proxy(), "follower": follower.Proxy(), "mount": onMount} {
		ask := relay.InProcess()
		_, err := ask.Change(asUser(t, 1000), setRule("x/*"))
		require.ErrorContains(t, err, "uid 1000 may not ask for set_rule", name)
		reply, err := ask.Change(asUser(t, 0), setRule(name+"/*"))
		if relay == onMount {
			require.ErrorContains(t, err, "uid 0 may not ask for set_rule: that takes a server", "on the mount")
		} else {
			require.NoError(t, err, name)
			require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode())
			by := lastEvent(t, leader, "rule_set").GetBy()
			require.Equal(t, relay.host, by.GetHost(), "whoever it says")
			require.Equal(t, uint32(12), by.GetPid())
		}

		everything := &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: &storepb.ListLocks{Viewer: &storepb.Viewer{Uid: 0}}}}
		seen := func(ctx context.Context) (names []string) {
			reply, err := ask.Execute(ctx, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: everything}})
			require.NoError(t, err, name)
			for _, lock := range reply.GetResult().GetLocks() {
				if lock.GetState() != "" { // he could read it
					names = append(names, string(lock.GetName()))
				}
			}
			return names
		}
		require.Equal(t, []string{"hidden.lock", "lock"}, seen(asUser(t, 0)), name)
		require.Equal(t, []string{"lock"}, seen(asUser(t, 1000)), name)
		_, err = ask.Execute(asUser(t, 1000), &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{
			Query: &storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{Ino: 2}}},
		}})
		require.ErrorContains(t, err, "uid 1000 may not ask for read", name)
		_, err = ask.Execute(asUser(t, 0), &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{
			Command: &storepb.Command{Session: 1, Op: createOp("by socket")},
		}})
		require.Error(t, err, name)
	}
}

func TestTheProxyAsksTheNamedMember(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	web, _ := join(t, nodes[0], "web1")
	mount := mountAt(t, web)
	relay := NewProxy("web1", web.Servers(), mount.keeper.Security(), quietLogger())
	defer relay.Close()
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := rpc.ListenSocket(path)
	require.NoError(t, err)
	server := relay.Server()
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	defer func() { _ = listener.Close() }()
	admin, err := NewAdmin([]string{"unix:" + path}, nil)
	require.NoError(t, err)
	defer admin.Close()
	found, err := admin.Status(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, found, 2)
	for i, status := range found {
		require.NoError(t, status.Err)
		require.Equal(t, nodes[i].dir.Name, status.Status.GetName())
		require.NotEmpty(t, status.Status.GetCluster())
		require.False(t, status.Status.GetInsecure())
	}
	sessions, err := admin.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	require.Equal(t, "web1", sessions[0].GetRecord().GetHost())
}
