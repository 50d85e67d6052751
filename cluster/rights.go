package cluster

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// right is what it takes to do something. Who has one has those before it.
type right int

// The rights there are.
const (
	ofStrangers right = iota
	ofUsers           // of a host of the cluster
	ofMounts          // hosts that mount
	ofServers         // servers, and root there
	nobodys           // only the process itself does it
)

func (r right) String() string {
	switch r {
	case ofStrangers:
		return "nothing"
	case ofUsers:
		return "a host of this cluster"
	case ofMounts:
		return "a mount of this cluster"
	case ofServers:
		return "a server of this cluster, or root on one"
	}
	return "the leader itself"
}

// rights is the only place that says who may do what: by their names in the .proto files, methods, and the queries and commands of
// Execute and the operations of Change. What is not in it is nobody's.
var rights = struct{ methods, queries, commands, changes map[protoreflect.Name]right }{
	methods: map[protoreflect.Name]right{
		"KeepAlive":        ofMounts,
		"Lease":            ofMounts,
		"Sessions":         ofUsers,
		"Removals":         ofMounts,
		"AwaitRelease":     ofMounts,
		"ReleaseQuestions": ofMounts,
		"EndedWaits":       ofMounts,
		"Probe":            ofMounts, // the word of a voter, for a read
		"Status":           ofUsers,
		workStatus:         ofServers,
		resignation:        ofServers,
		"Join":             ofServers,
		"Remove":           ofServers,
		"SetVote":          ofServers,
		"Backup":           ofServers,   // which has everything, whatever the permissions of files are
		"Enroll":           ofStrangers, // a token or a known key says who may
		"ProveServer":      ofStrangers, // of the server that is asked
		proofOfCaller:      ofServers,
	},
	queries: map[protoreflect.Name]right{
		"lookup":              ofMounts,
		"get_attr":            ofMounts,
		"read":                ofMounts,
		"read_dir":            ofMounts,
		"get_xattrs":          ofMounts,
		"stat_fs":             ofUsers,
		"list_members":        ofUsers,
		"list_sessions":       ofUsers,
		"list_rules":          ofUsers,
		"list_hosts":          ofUsers,
		"list_locks":          ofUsers, // which answers what its viewer may see, as the next three do
		"preview_rule":        ofUsers,
		"list_advisory_locks": ofUsers,
		"list_events":         ofUsers,
		"get_lock":            ofMounts,
		"list_processes":      ofMounts,
		"await_lock":          ofMounts,
		"test_lock":           ofMounts,
		"await_change":        ofMounts,
		"get_cluster":         ofUsers,
		"list_authorities":    ofUsers, // without their keys
		"list_tokens":         ofServers,
		"get_admission":       ofServers,
		"list_admissions":     ofServers,
		"list_alarms":         ofUsers,
		"list_quotas":         ofMounts, // with names of directories
		unknown:               ofMounts, // it is answered that nobody here knows it
	},
	// In a session of the host that sends them.
	commands: map[protoreflect.Name]right{
		"create":         ofMounts,
		"link":           ofMounts,
		"unlink":         ofMounts,
		"rename":         ofMounts,
		"set_attr":       ofMounts,
		"set_content":    ofMounts,
		"set_xattr":      ofMounts,
		"remove_xattr":   ofMounts,
		"pin":            ofMounts,
		"unpin":          ofMounts,
		"open_session":   ofMounts,
		"close_session":  ofMounts,
		"cancel":         ofMounts,
		"process_gone":   ofMounts,
		"take_lock":      ofMounts,
		"drop_locks":     ofMounts,
		"interrupt_lock": ofMounts,
		unknown:          ofMounts,
		"set_member":     nobodys, // these are the leader's own, and what administrators ask for by Change
		"set_version":    nobodys,
		"remove_member":  nobodys,
		"set_limits":     nobodys,
		"end_session":    nobodys,
		"set_rule":       nobodys,
		"delete_rule":    nobodys,
		"forget_host":    nobodys,
		"tick":           nobodys,
		"set_cluster":    nobodys,
		"add_authority":  nobodys,
		"drop_authority": nobodys,
		"put_token":      nobodys,
		"delete_token":   nobodys,
		"admit_host":     nobodys,
		"revoke_host":    nobodys,
		"note_refusal":   nobodys,
		"raise_alarm":    nobodys,
		"clear_alarm":    nobodys,
		"freeze_state":   nobodys,
		"set_quota":      nobodys,
		"delete_quota":   nobodys,
	},
	changes: map[protoreflect.Name]right{
		"set_rule":      ofServers,
		"delete_rule":   ofServers,
		"forget_host":   ofServers,
		"put_token":     ofServers,
		"delete_token":  ofServers,
		"revoke_host":   ofServers,
		ownRevocation:   ofMounts,  // of a host that leaves
		"add_authority": ofServers, // which the leader makes
		"clear_alarm":   ofServers,
		"set_quota":     ofServers,
		"delete_quota":  ofServers,
		"unlink":        ofServers, // of one lock, whoever has it
	},
}

const (
	// workStatus is a status for which the node has to work: a hash of its state, a quorum round, or a call to another server.
	workStatus = "Status with hash, confirm or reached"
	// resignation is a probe that ends what the leader of the term before has to give.
	resignation = "Probe with elected"
	// proofOfCaller is a proof that the calling server is one.
	proofOfCaller = "ProveServer with of_caller"
	// ownRevocation is revoke_host without a name: the host that asks.
	ownRevocation = "revoke_host of oneself"
	// unknown is an operation of a newer version, or none at all.
	unknown = ""
)

// rightFor is the right that a request takes, and what it is called.
func rightFor(request proto.Message) (what protoreflect.Name, least right) {
	of := rights.methods
	what = protoreflect.Name(strings.TrimSuffix(string(request.ProtoReflect().Descriptor().Name()), "Request"))
	switch r := request.(type) {
	case *clusterpb.StatusRequest:
		if r.GetHash() || r.GetConfirm() || r.GetFrozen() != 0 || r.GetReached() != "" {
			what = workStatus
		}
	case *clusterpb.ProbeRequest:
		if r.GetElected() != 0 {
			what = resignation
		}
	case *clusterpb.ProveServerRequest:
		if r.GetOfCaller() {
			what = proofOfCaller
		}
	case *clusterpb.ChangeRequest:
		of, what = rights.changes, caseOf(r.GetOp())
		if revoked := r.GetOp().GetRevokeHost(); revoked != nil && revoked.GetName() == "" {
			what = ownRevocation
		}
	case *clusterpb.ExecuteRequest:
		if r.GetQuery() != nil {
			of, what = rights.queries, caseOf(r.GetQuery())
		} else {
			of, what = rights.commands, caseOf(r.GetCommand().GetOp())
		}
	}
	least, found := of[what]
	if !found {
		return what, nobodys
	}
	return what, least
}

// caseOf is which one of its messages a query or operation has.
func caseOf(m proto.Message) protoreflect.Name {
	oneof := m.ProtoReflect()
	if field := oneof.WhichOneof(oneof.Descriptor().Oneofs().Get(0)); field != nil {
		return field.Name()
	}
	return unknown
}

// rightOf is what the connection of a caller proves that he may. Without TLS nobody can tell.
func rightOf(caller rpc.Caller) right {
	switch caller.Role {
	case rpc.RoleLocal:
		return nobodys
	case rpc.RoleInsecure, rpc.RoleServer:
		return ofServers
	case rpc.RoleClient:
		return ofMounts
	case rpc.RoleUser:
		return ofUsers
	}
	return ofStrangers
}
