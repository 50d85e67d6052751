package cluster

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// What each role may besides what those before it may; nobody may the rest.
var (
	strangersMay = []string{"Enroll", "ProveServer"}
	usersMay     = []string{
		"Sessions", "Status", "query stat_fs", "query list_members", "query list_sessions", "query list_rules", "query list_hosts",
		"query list_locks", "query preview_rule", "query list_advisory_locks", "query list_events", "query get_cluster", "query list_authorities",
		"query list_alarms",
	}
	mountsMay = []string{
		"KeepAlive", "Lease", "Removals", "AwaitRelease", "ReleaseQuestions", "EndedWaits", "Probe",
		"query ", "query lookup", "query get_attr", "query read", "query read_dir", "query get_xattrs", "query get_lock", "query list_processes",
		"query await_lock", "query test_lock", "query test_change", "query list_quotas",
		"command ", "command create", "command link", "command unlink", "command rename", "command set_attr", "command set_content",
		"command set_xattr", "command remove_xattr", "command pin", "command unpin", "command open_session", "command close_session",
		"command cancel", "command process_gone", "command take_lock", "command drop_locks", "command interrupt_lock",
		"change " + revokeSelf,
	}
	serversMay = []string{
		"Join", "Remove", "SetVote", "Backup", costlyStatus, probeOfSuccessor, proofOfCaller, "query list_tokens", "query get_admission", "query list_admissions",
		"change set_rule", "change delete_rule", "change forget_host", "change put_token", "change delete_token", "change revoke_host",
		"change add_authority", "change clear_alarm", "change set_quota", "change delete_quota", "change unlink",
	}
)

// everyRequest is one request for each row that the table of rights can have, by what the test calls it.
func everyRequest(t testing.TB) map[string]proto.Message {
	t.Helper()
	all := map[string]proto.Message{
		costlyStatus:             &clusterpb.StatusRequest{Hash: true},
		probeOfSuccessor:         &clusterpb.ProbeRequest{Elected: 1},
		proofOfCaller:            &clusterpb.ProveServerRequest{OfCaller: true},
		costlyStatus + " (both)": &clusterpb.StatusRequest{Confirm: true},
		"query ":                 &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: new(storepb.Query)}},
		"command ":               &clusterpb.ExecuteRequest{},
		"change ":                &clusterpb.ChangeRequest{},
	}
	methods := clusterpb.File_cluster_clusterpb_cluster_proto.Services().ByName("Node").Methods()
	for i := range methods.Len() {
		name := string(methods.Get(i).Name())
		if name == "Execute" || name == "Change" {
			continue
		}
		request, err := newMessage(methods.Get(i).Input())
		require.NoError(t, err)
		all[name] = request
	}
	for _, field := range casesOf(new(storepb.Query)) {
		query := new(storepb.Query)
		query.ProtoReflect().Set(field, query.ProtoReflect().NewField(field))
		all["query "+string(field.Name())] = &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}}
	}
	for _, field := range casesOf(new(storepb.Op)) {
		op := new(storepb.Op)
		op.ProtoReflect().Set(field, op.ProtoReflect().NewField(field))
		all["command "+string(field.Name())] = &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{Op: op}}}
		all["change "+string(field.Name())] = &clusterpb.ChangeRequest{Op: op}
	}
	revocation := func(name string) *clusterpb.ChangeRequest {
		return &clusterpb.ChangeRequest{Op: &storepb.Op{Op: &storepb.Op_RevokeHost{RevokeHost: &storepb.RevokeHost{Name: name}}}}
	}
	all["change revoke_host"], all["change "+revokeSelf] = revocation("a"), revocation("")
	return all
}

func casesOf(m proto.Message) (fields []protoreflect.FieldDescriptor) {
	cases := m.ProtoReflect().Descriptor().Oneofs().Get(0).Fields()
	for i := range cases.Len() {
		fields = append(fields, cases.Get(i))
	}
	return fields
}

// newMessage makes an empty one.
func newMessage(of protoreflect.MessageDescriptor) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}

func TestEachRoleHasThePermissionsOfItsRows(t *testing.T) {
	t.Parallel()
	may := map[rpc.Role][]string{
		rpc.RoleJoiner: strangersMay,
		rpc.RoleUser:   slices.Concat(strangersMay, usersMay),
		rpc.RoleClient: slices.Concat(strangersMay, usersMay, mountsMay),
		rpc.RoleServer: slices.Concat(strangersMay, usersMay, mountsMay, serversMay, []string{costlyStatus + " (both)"}),
	}
	may[rpc.RoleInsecure] = may[rpc.RoleServer]
	requests := everyRequest(t)
	for role, allowed := range may {
		for _, name := range allowed {
			require.Contains(t, requests, name, "there is no such call")
		}
		for name, request := range requests {
			what, least := requiredPermission(request)
			require.Equal(t, slices.Contains(allowed, name), grantedPermission(rpc.Caller{Role: role}) >= least, "%v: %s (row %q)", role, name, what)
		}
	}
	for name, request := range requests {
		_, least := requiredPermission(request)
		require.GreaterOrEqual(t, grantedPermission(rpc.Caller{}), least, "this process: %s", name)
		require.Less(t, grantedPermission(rpc.Caller{Role: rpc.RoleServer + 1}), forUsers, "a role that nobody knows")
	}
}

// TestEveryPermissionNamesACall: a row with a name that is written wrongly would be nobody's.
func TestEveryPermissionNamesACall(t *testing.T) {
	t.Parallel()
	rows := make(map[string]bool)
	for kind, table := range map[string]map[protoreflect.Name]permission{
		"": permissions.methods, "query ": permissions.queries, "command ": permissions.commands, "change ": permissions.changes,
	} {
		for name := range table {
			rows[kind+string(name)] = true
		}
	}
	requests := everyRequest(t)
	for row := range rows {
		require.Contains(t, requests, row)
	}
	for name := range requests {
		if name != costlyStatus+" (both)" && len(name) > len("change") && name[:len("change")] != "change" {
			require.Contains(t, rows, name, "it is nobody's by default, and is to say so")
		}
	}
}

// told is a node that notes what came through to it.
type told struct {
	rpc.Node
	calls int
}

func (n *told) Remove(context.Context, *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	n.calls++
	return &clusterpb.AdminReply{}, nil
}

func TestTheAuthorizerAnswersRefusedCallers(t *testing.T) {
	t.Parallel()
	node := new(told)
	counted := make(map[string]int)
	refusalLog := newRefusalLog(quietLogger(), func(role, what string) { counted[fmt.Sprint(role, " ", what)]++ })
	g := &authorizer{node: node, grant: grantedPermission, onRefusal: refusalLog.note}
	as := func(role rpc.Role) context.Context {
		return rpc.WithCaller(t.Context(), rpc.Caller{Role: role, Host: "web1"})
	}
	for range 2 {
		_, err := g.Remove(as(rpc.RoleClient), &clusterpb.RemoveRequest{Name: "a"})
		refused := new(rpc.RefusedError)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, storepb.Code_NOT_PERMITTED, refused.Result.GetCode())
		require.Contains(t, refused.Result.GetMessage(), "web1")
		require.Contains(t, refused.Result.GetMessage(), "Remove: that takes a server")
	}
	require.Zero(t, node.calls)
	require.Equal(t, map[string]int{"client Remove": 2}, counted)
	require.Len(t, refusalLog.seen, 1, "it is logged once")
	_, err := g.Remove(as(rpc.RoleServer), &clusterpb.RemoveRequest{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, 1, node.calls)
}
