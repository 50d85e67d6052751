package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/health"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// Admin asks a cluster about itself, from outside.
type Admin struct {
	servers []string
	peers   *rpc.Peers
	router  *rpc.Router
}

// NewAdmin takes the addresses of one or more members. security may be nil.
func NewAdmin(servers []string, security *rpc.Security) (*Admin, error) {
	if len(servers) == 0 {
		return nil, errors.New("no servers are given")
	}
	peers := rpc.NewPeers(security)
	return &Admin{servers: servers, peers: peers, router: rpc.NewRouter(peers, peers.Nodes(servers)...)}, nil
}

// Close closes the connections.
func (a *Admin) Close() { a.peers.Close() }

// NodeStatus is the status of one node, or the error.
type NodeStatus struct {
	Address string
	ID      string
	Name    string // of the member, also without an answer
	Voter   bool
	Joining bool // it has no vote yet
	Status  *clusterpb.StatusReply
	Err     error
}

// Status asks every member, and sorts the answers by name.
func (a *Admin) Status(ctx context.Context, withHash bool) ([]NodeStatus, error) {
	members, err := a.Members(ctx)
	if err != nil {
		return nil, err
	}
	nodes := make([]NodeStatus, len(members))
	var asking sync.WaitGroup
	for i, member := range members {
		nodes[i] = NodeStatus{Address: member.GetAddress(), ID: member.GetId(), Name: member.GetName(), Voter: member.Voter, Joining: member.Joining}
		asking.Go(func() { nodes[i].Status, nodes[i].Err = a.statusOf(ctx, member.Member, withHash) })
	}
	asking.Wait()
	slices.SortFunc(nodes, func(x, y NodeStatus) int { return strings.Compare(x.Name, y.Name) })
	return nodes, nil
}

// Health returns which voters answer and whether a quorum confirms a read, and the status of each member,
// within health.Timeout. An error means that no server was found that could name the members.
func (a *Admin) Health(ctx context.Context, withHash bool) (health.Health, []NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, health.Timeout)
	defer cancel()
	confirmed := make(chan error, 1)
	go func() {
		_, err := rpc.Ask(ctx, a.router, rpc.Node.Execute, statFs)
		confirmed <- err
	}()
	nodes, err := a.Status(ctx, withHash)
	if err != nil {
		return health.Of(nil, err), nil, err
	}
	var voters []health.Voter
	for _, node := range nodes {
		if !node.Voter {
			continue
		}
		voter := health.Voter{Name: node.Name}
		if node.Err != nil {
			voter.Failure = health.Cause(node.Err)
		}
		voters = append(voters, voter)
	}
	return health.Of(voters, <-confirmed), nodes, nil
}

// statusOf asks a member; on a socket, through the daemon there.
func (a *Admin) statusOf(ctx context.Context, member *storepb.Member, withHash bool) (*clusterpb.StatusReply, error) {
	request := &clusterpb.StatusRequest{Hash: withHash}
	if rpc.IsSocket(a.servers[0]) {
		request.Member = member.GetId()
		return a.status(ctx, a.servers[0], request)
	}
	ctx, cancel := context.WithTimeout(rpc.Unproven(ctx), rpc.AttemptTimeout)
	defer cancel()
	others := slices.DeleteFunc(slices.Clone(a.servers), func(server string) bool { return server == member.GetAddress() })
	return statusOfMember(ctx, a.peers.Node(member.GetAddress()), member.GetId(), a.peers.Nodes(others), request)
}

// status also asks servers without a proof of membership, which takes a leader. It asks no removed server.
func (a *Admin) status(ctx context.Context, address string, request *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	ctx, cancel := context.WithTimeout(rpc.Unproven(ctx), rpc.AttemptTimeout)
	defer cancel()
	return a.peers.Node(address).Status(ctx, request)
}

// Member is a node of the cluster.
type Member struct {
	*storepb.Member
	Voter   bool
	Joining bool // it has no vote yet
}

// Clusters asks each given server, and takes each member's answer, for the id of its cluster.
func (a *Admin) Clusters(ctx context.Context, nodes []NodeStatus) *rpc.Clusters {
	clusters := new(rpc.Clusters)
	for _, node := range nodes {
		if node.Err == nil {
			clusters.Add(node.Address, node.Status)
		}
	}
	replies := make([]*clusterpb.StatusReply, len(a.servers))
	var asking sync.WaitGroup
	for i, server := range a.servers {
		if len(a.servers) > 1 { // a single one was asked for the members
			asking.Go(func() { replies[i], _ = a.status(ctx, server, new(clusterpb.StatusRequest)) })
		}
	}
	asking.Wait()
	for i, reply := range replies {
		if reply != nil {
			clusters.Add(a.servers[i], reply)
		}
	}
	return clusters
}

// Members returns the members known to the first server that answers.
func (a *Admin) Members(ctx context.Context) ([]Member, error) {
	type answer struct {
		status *clusterpb.StatusReply
		err    error
	}
	answers := make(chan answer, len(a.servers))
	for _, server := range a.servers {
		go func() {
			status, err := a.status(ctx, server, new(clusterpb.StatusRequest))
			answers <- answer{status, err}
		}()
	}
	var failed error
	for range a.servers {
		got := <-answers
		if got.err != nil {
			failed = got.err // the last one: errors are mostly the same
			continue
		}
		status := got.status
		members := make([]Member, len(status.GetMembers()))
		for i, member := range status.GetMembers() {
			voter := slices.Contains(status.GetVoters(), member.GetId())
			members[i] = Member{member, voter, !voter && !member.GetNonvoter()}
		}
		return members, nil
	}
	return nil, fmt.Errorf("no server answers: %w", failed)
}

// Sessions returns the mounts, as the leader knows them.
func (a *Admin) Sessions(ctx context.Context) ([]*clusterpb.Session, error) {
	reply, err := rpc.Ask(ctx, a.router, rpc.Node.Sessions, &clusterpb.SessionsRequest{})
	return reply.GetSessions(), err
}

// Query answers a query from outside of a mount.
func (a *Admin) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if err := a.maySend(ctx, query); err != nil {
		return nil, err
	}
	request := &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}}
	reply, err := rpc.Ask(ctx, a.router, rpc.Node.Execute, request)
	result := reply.GetResult()
	if err == nil && result.GetCode() != storepb.Code_OK {
		return nil, &rpc.RefusedError{Result: result}
	}
	return result, err
}

// maySend returns an error for a request unknown at the cluster's version. It asks for the version only
// if necessary.
func (a *Admin) maySend(ctx context.Context, request codec.Request) error {
	if codec.CheckMaySend(request, version.Oldest) == nil {
		return nil
	}
	known, err := a.Status(ctx, false)
	if err != nil {
		return err
	}
	at := version.Oldest
	for _, node := range known {
		at = max(at, node.Status.GetClusterVersion())
	}
	return codec.CheckMaySend(request, at)
}

// Change does an operation outside of mounts, one of a ChangeRequest. caller is for the audit trail,
// unless the server knows better. A repetition after a lost reply does it again.
func (a *Admin) Change(ctx context.Context, caller *storepb.Caller, op *storepb.Op) error {
	if err := a.maySend(ctx, op); err != nil {
		return err
	}
	return done(rpc.Ask(ctx, a.router, rpc.Node.Change, &clusterpb.ChangeRequest{Op: op, Caller: caller}))
}

// Remove removes a member by name; force skips the check that a quorum remains.
func (a *Admin) Remove(ctx context.Context, name string, force bool) error {
	return done(rpc.Ask(ctx, a.router, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: name, Force: force}))
}

// Replace removes a member after another one has caught up and is a voter.
func (a *Admin) Replace(ctx context.Context, name, by string) error {
	return done(rpc.Ask(ctx, a.router, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: name, Replacement: by}))
}

// SetVote promotes or demotes a member; force skips the check that a quorum remains.
func (a *Admin) SetVote(ctx context.Context, name string, vote, force bool) error {
	return done(rpc.Ask(ctx, a.router, rpc.Node.SetVote, &clusterpb.SetVoteRequest{Name: name, Vote: vote, Force: force}))
}

// Silences returns how long members have not answered the leader, by id; nil if the leader does not answer.
func (a *Admin) Silences(ctx context.Context) map[string]time.Duration {
	status, err := a.status(ctx, a.servers[0], new(clusterpb.StatusRequest))
	if err != nil {
		return nil
	}
	if status.GetLeaderId() != status.GetId() {
		leader := &storepb.Member{Id: status.GetLeaderId(), Address: status.GetLeaderAddress()}
		if status, err = a.statusOf(ctx, leader, false); err != nil {
			return nil
		}
	}
	silences := make(map[string]time.Duration)
	for _, silence := range status.GetSilences() {
		silences[silence.GetId()] = time.Duration(silence.GetDuration())
	}
	return silences
}

// done returns the reason why a change was not made.
func done(reply *clusterpb.AdminReply, err error) error {
	if err == nil && reply.GetResult().GetCode() != storepb.Code_OK {
		return &rpc.RefusedError{Result: reply.GetResult()}
	}
	return err
}
