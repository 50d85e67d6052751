package cluster

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// permission is needed for a call. Each one includes those before it.
type permission int

// The permissions.
const (
	forAnyone  permission = iota
	forUsers              // of a host of the cluster
	forMounts             // hosts that mount
	forServers            // servers, and root there
	forProcess            // the process itself
)

func (p permission) String() string {
	switch p {
	case forAnyone:
		return "nothing"
	case forUsers:
		return "a host of this cluster"
	case forMounts:
		return "a mount of this cluster"
	case forServers:
		return "a server of this cluster, or root on one"
	}
	return "the leader itself"
}

// permissions has all calls: methods, queries and commands of Execute, and operations of Change, by their
// names in the .proto files. Other calls are refused.
var permissions = struct {
	methods, queries, commands, changes map[protoreflect.Name]permission
}{
	methods: map[protoreflect.Name]permission{
		"KeepAlive":        forMounts,
		"Lease":            forMounts,
		"Sessions":         forUsers,
		"Removals":         forMounts,
		"AwaitRelease":     forMounts,
		"ReleaseQuestions": forMounts,
		"EndedWaits":       forMounts,
		"Probe":            forMounts, // the report of a voter, for a read
		"Status":           forUsers,
		costlyStatus:       forServers,
		probeOfSuccessor:   forServers,
		"Join":             forServers,
		"Remove":           forServers,
		"SetVote":          forServers,
		"Backup":           forServers, // which has everything, whatever the mode of a file
		"Enroll":           forAnyone,  // a token or a known key decides
		"ProveServer":      forAnyone,  // of the called server
		proofOfCaller:      forServers,
	},
	queries: map[protoreflect.Name]permission{
		"lookup":              forMounts,
		"get_attr":            forMounts,
		"read":                forMounts,
		"read_dir":            forMounts,
		"get_xattrs":          forMounts,
		"stat_fs":             forUsers,
		"list_members":        forUsers,
		"list_sessions":       forUsers,
		"list_rules":          forUsers,
		"list_hosts":          forUsers,
		"list_locks":          forUsers, // filtered for its viewer, as are the next three
		"preview_rule":        forUsers,
		"list_advisory_locks": forUsers,
		"list_events":         forUsers,
		"get_lock":            forMounts,
		"list_processes":      forMounts,
		"await_lock":          forMounts,
		"test_lock":           forMounts,
		"test_change":         forMounts,
		"get_cluster":         forUsers,
		"list_authorities":    forUsers, // without their keys
		"list_tokens":         forServers,
		"get_admission":       forServers,
		"list_admissions":     forServers,
		"list_alarms":         forUsers,
		"list_quotas":         forMounts, // with names of directories
		unknownOperation:      forMounts, // the reply says that it is unknown
	},
	// These run in a session of the caller's host.
	commands: map[protoreflect.Name]permission{
		"create":         forMounts,
		"link":           forMounts,
		"unlink":         forMounts,
		"rename":         forMounts,
		"set_attr":       forMounts,
		"set_content":    forMounts,
		"set_xattr":      forMounts,
		"remove_xattr":   forMounts,
		"pin":            forMounts,
		"unpin":          forMounts,
		"open_session":   forMounts,
		"close_session":  forMounts,
		"cancel":         forMounts,
		"process_gone":   forMounts,
		"take_lock":      forMounts,
		"drop_locks":     forMounts,
		"interrupt_lock": forMounts,
		unknownOperation: forMounts,
		"set_member":     forProcess, // the leader proposes these itself; administrators use Change
		"set_version":    forProcess,
		"remove_member":  forProcess,
		"set_limits":     forProcess,
		"end_session":    forProcess,
		"set_rule":       forProcess,
		"delete_rule":    forProcess,
		"forget_host":    forProcess,
		"tick":           forProcess,
		"set_cluster":    forProcess,
		"add_authority":  forProcess,
		"drop_authority": forProcess,
		"put_token":      forProcess,
		"delete_token":   forProcess,
		"admit_host":     forProcess,
		"revoke_host":    forProcess,
		"note_refusal":   forProcess,
		"raise_alarm":    forProcess,
		"clear_alarm":    forProcess,
		"freeze_state":   forProcess,
		"set_quota":      forProcess,
		"delete_quota":   forProcess,
	},
	changes: map[protoreflect.Name]permission{
		"set_rule":      forServers,
		"delete_rule":   forServers,
		"forget_host":   forServers,
		"put_token":     forServers,
		"delete_token":  forServers,
		"revoke_host":   forServers,
		revokeSelf:      forMounts,  // of a leaving host
		"add_authority": forServers, // the leader makes the CA
		"clear_alarm":   forServers,
		"set_quota":     forServers,
		"delete_quota":  forServers,
		"unlink":        forServers, // of one lock, of any holder
	},
}

const (
	// costlyStatus is a status with a hash of the state, a quorum round, or a call to another server.
	costlyStatus = "Status with hash, confirm or reached"
	// probeOfSuccessor is a probe by a new leader: its predecessor stops granting leases.
	probeOfSuccessor = "Probe with elected"
	// proofOfCaller is a proof for the calling server.
	proofOfCaller = "ProveServer with of_caller"
	// revokeSelf is revoke_host without a name, for the calling host.
	revokeSelf = "revoke_host of oneself"
	// unknownOperation is an operation of a newer version, or none.
	unknownOperation = ""
)

// requiredPermission returns the name of a request in the table and its permission.
func requiredPermission(request proto.Message) (what protoreflect.Name, least permission) {
	of := permissions.methods
	what = protoreflect.Name(strings.TrimSuffix(string(request.ProtoReflect().Descriptor().Name()), "Request"))
	switch r := request.(type) {
	case *clusterpb.StatusRequest:
		if r.GetHash() || r.GetConfirm() || r.GetFrozen() != 0 || r.GetReached() != "" {
			what = costlyStatus
		}
	case *clusterpb.ProbeRequest:
		if r.GetElected() != 0 {
			what = probeOfSuccessor
		}
	case *clusterpb.ProveServerRequest:
		if r.GetOfCaller() {
			what = proofOfCaller
		}
	case *clusterpb.ChangeRequest:
		of, what = permissions.changes, caseOf(r.GetOp())
		if revoked := r.GetOp().GetRevokeHost(); revoked != nil && revoked.GetName() == "" {
			what = revokeSelf
		}
	case *clusterpb.ExecuteRequest:
		if r.GetQuery() != nil {
			of, what = permissions.queries, caseOf(r.GetQuery())
		} else {
			of, what = permissions.commands, caseOf(r.GetCommand().GetOp())
		}
	}
	least, found := of[what]
	if !found {
		return what, forProcess
	}
	return what, least
}

// caseOf returns the name of the message in a query or operation.
func caseOf(m proto.Message) protoreflect.Name {
	oneof := m.ProtoReflect()
	if field := oneof.WhichOneof(oneof.Descriptor().Oneofs().Get(0)); field != nil {
		return field.Name()
	}
	return unknownOperation
}

// grantedPermission returns the permission proven by the caller's connection. Without TLS every caller
// counts as a server.
func grantedPermission(caller rpc.Caller) permission {
	switch caller.Role {
	case rpc.RoleLocal:
		return forProcess
	case rpc.RoleInsecure, rpc.RoleServer:
		return forServers
	case rpc.RoleClient:
		return forMounts
	case rpc.RoleUser:
		return forUsers
	}
	return forAnyone
}
