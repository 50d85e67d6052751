package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// Relay is whom people ask on the unix sockets of a host. It knows them by their uid, and asks the cluster for them with what the
// host itself may, so that nobody needs a certificate or an address. Root, and who runs the daemon, may what the host may; others
// may look, and see what they could see on the mount.
type Relay struct {
	host   string
	near   rpc.Node // of this process; nil: there is none
	peers  *rpc.Peers
	router *rpc.Router
	roots  right // what root may
	logger *slog.Logger
	count  func(role, what string)
}

// NewRelay is that of a host which only mounts. host is its name; security is nil for an insecure cluster, in which root may all, as
// whoever reaches a server may.
func NewRelay(host string, servers []string, security *rpc.Security, logger *slog.Logger) *Relay {
	peers := rpc.NewPeers(security)
	r := &Relay{
		host: host, peers: peers, router: rpc.NewRoamingRouter(peers, peers.Nodes(servers)...), roots: ofMounts, logger: logger,
	}
	if security == nil {
		r.roots = ofServers
	}
	return r
}

// Relay is that of a node, and ends with it.
func (n *Node) Relay() *Relay {
	return &Relay{
		host: n.dir.Name, near: n, peers: n.peers, router: n.router, roots: ofServers, logger: n.logger,
		count: n.cfg.Metrics.refused,
	}
}

// Close ends the connections of NewRelay.
func (r *Relay) Close() { r.peers.Close() }

// Server answers on unix sockets. It is the caller's to close.
func (r *Relay) Server() *rpc.Server {
	return rpc.NewSocketServer(r.Front(), func() {}, func(rpc.Caller) {})
}

// Front answers in this process whom the context of a call names (rpc.RoleUser), as a socket would: with what he may, and no more.
func (r *Relay) Front() rpc.Node {
	return &guard{node: relayed{r}, rightOf: r.rightOf, refused: newRefusals(r.logger, r.count).note}
}

func (r *Relay) rightOf(caller rpc.Caller) right {
	if r.isRoot(caller) {
		return r.roots
	}
	return rightOf(caller)
}

// Administers tells whether a caller of [Relay.Front] may change what belongs to no mount: rules, members, and others' locks.
func (r *Relay) Administers(caller rpc.Caller) bool { return r.rightOf(caller) >= ofServers }

// Host is the name by which changes that are asked for here are told in events.
func (r *Relay) Host() string { return r.host }

func (r *Relay) isRoot(caller rpc.Caller) bool {
	return caller.Role == rpc.RoleUser && (caller.UID == 0 || int(caller.UID) == os.Geteuid())
}

var _ rpc.Node = relayed{}

// relayed passes on what has the right. What it asks for others it asks as this process.
type relayed struct{ *Relay }

// forward asks the leader.
func forward[Request any, Reply rpc.Answer](
	ctx context.Context, r *Relay, method func(rpc.Node, context.Context, Request) (Reply, error), request Request, undone Reply,
) (Reply, error) {
	reply, err := rpc.Ask(rpc.WithCaller(ctx, rpc.Caller{}), r.router, method, request)
	if refused := new(rpc.RefusedError); err == nil || errors.As(err, &refused) {
		return reply, err
	}
	return undone, nil
}

// Execute is part of rpc.Node. Commands are for mounts, which have sessions.
func (r relayed) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	query := req.GetQuery()
	if query == nil {
		return nil, notRelayed()
	}
	if caller := rpc.CallerOf(ctx); !r.isRoot(caller) {
		setViewer(query, &storepb.Viewer{Uid: caller.UID, Gid: caller.GID, Groups: caller.Groups, MoreGroups: caller.Groups == nil})
	}
	asked := &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}}
	return forward(ctx, r.Relay, rpc.Node.Execute, asked, &clusterpb.ExecuteReply{Outcome: clusterpb.Outcome_NOT_DONE})
}

// setViewer has a query be answered to somebody, whatever it says itself.
func setViewer(query *storepb.Query, viewer *storepb.Viewer) {
	switch q := query.GetQuery().(type) {
	case *storepb.Query_ListLocks:
		q.ListLocks.Viewer = viewer
	case *storepb.Query_PreviewRule:
		q.PreviewRule.Viewer = viewer
	case *storepb.Query_ListAdvisoryLocks:
		q.ListAdvisoryLocks.Viewer = viewer
	case *storepb.Query_ListEvents:
		q.ListEvents.Viewer = viewer
	}
}

// Sessions is part of rpc.Node.
func (r relayed) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return forward(ctx, r.Relay, rpc.Node.Sessions, req, &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_DONE})
}

// Remove is part of rpc.Node.
func (r relayed) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	req.Caller = r.by(ctx, req.GetCaller())
	return forward(ctx, r.Relay, rpc.Node.Remove, req, &clusterpb.AdminReply{Outcome: clusterpb.Outcome_UNKNOWN})
}

// SetVote is part of rpc.Node.
func (r relayed) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	req.Caller = r.by(ctx, req.GetCaller())
	return forward(ctx, r.Relay, rpc.Node.SetVote, req, &clusterpb.AdminReply{Outcome: clusterpb.Outcome_UNKNOWN})
}

// Change is part of rpc.Node.
func (r relayed) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	req.Caller = r.by(ctx, req.GetCaller())
	return forward(ctx, r.Relay, rpc.Node.Change, req, &clusterpb.AdminReply{Outcome: clusterpb.Outcome_UNKNOWN})
}

// Backup is part of rpc.Node. Only who is root on a server may ask for one, and gets that server's.
func (r relayed) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	if r.near == nil {
		return nil, notRelayed()
	}
	return r.near.Backup(rpc.WithCaller(ctx, rpc.Caller{}), req)
}

// by is who asks, for the audit trail.
func (r *Relay) by(ctx context.Context, said *storepb.Caller) *storepb.Caller {
	caller := rpc.CallerOf(ctx)
	return &storepb.Caller{Host: r.host, Uid: caller.UID, Gid: caller.GID, Pid: said.GetPid()}
}

// Status is part of rpc.Node.
func (r relayed) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	ctx = rpc.WithCaller(ctx, rpc.Caller{})
	asked := &clusterpb.StatusRequest{Hash: req.GetHash(), Confirm: req.GetConfirm(), Recent: req.GetRecent()}
	if req.GetMember() == "" {
		return r.anybody(ctx, asked)
	}
	known, err := r.anybody(ctx, new(clusterpb.StatusRequest))
	if err != nil {
		return nil, err
	}
	if r.near != nil && (known.GetId() == req.GetMember() || known.GetName() == req.GetMember()) {
		return r.near.Status(ctx, asked)
	}
	for _, member := range known.GetMembers() {
		if member.GetId() == req.GetMember() || member.GetName() == req.GetMember() {
			reply, err := statusOfMember(ctx, r.peers.Node(member.GetAddress()), member.GetId(), r.othersThan(member, known), asked)
			return reply, inWords(err)
		}
	}
	return nil, refuse(storepb.Code_NOT_FOUND, fmt.Sprintf("no member is called %q", req.GetMember()))
}

// othersThan are the servers besides a member and the one of this process.
func (r *Relay) othersThan(member *storepb.Member, known *clusterpb.StatusReply) (others []rpc.Node) {
	for _, other := range known.GetMembers() {
		if own := r.near != nil && other.GetId() == known.GetId(); !own && other.GetId() != member.GetId() && other.GetAddress() != "" {
			others = append(others, r.peers.Node(other.GetAddress()))
		}
	}
	return others
}

// anybody asks the node of this process, or else each that is known until one answers.
func (r *Relay) anybody(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	if r.near != nil {
		return r.near.Status(ctx, req)
	}
	var failed error
	for _, node := range append([]rpc.Node{r.router.Entrance()}, r.router.Entries()...) {
		attempt, cancel := context.WithTimeout(ctx, connectWait)
		reply, err := node.Status(attempt, req)
		cancel()
		if err == nil {
			r.router.Meet(addressesOf(reply))
			return reply, nil
		}
		failed = err
	}
	return nil, inWords(fmt.Errorf("no server answers: %w", failed))
}

// connectWait is less than what a command waits for an answer, so that it hears of another server's.
const connectWait = rpc.AttemptTimeout / 4

func addressesOf(status *clusterpb.StatusReply) (addresses []string) {
	for _, member := range status.GetMembers() {
		addresses = append(addresses, member.GetAddress())
	}
	return addresses
}

// inWords makes an error one that can be told to a caller.
func inWords(err error) error {
	if refused := new(rpc.RefusedError); err == nil || errors.As(err, &refused) {
		return err
	}
	return refuse(storepb.Code_NOT_FOUND, err.Error())
}

// KeepAlive is part of rpc.Node, and not for sockets, as are those below.
func (relayed) KeepAlive(context.Context, *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return nil, notRelayed()
}

// Lease is part of rpc.Node.
func (relayed) Lease(context.Context, *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	return nil, notRelayed()
}

// Removals is part of rpc.Node.
func (relayed) Removals(context.Context, *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	return nil, notRelayed()
}

// AwaitRelease is part of rpc.Node.
func (relayed) AwaitRelease(context.Context, *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	return nil, notRelayed()
}

// ReleaseQuestions is part of rpc.Node.
func (relayed) ReleaseQuestions(context.Context, *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	return nil, notRelayed()
}

// EndedWaits is part of rpc.Node.
func (relayed) EndedWaits(context.Context, *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	return nil, notRelayed()
}

// Probe is part of rpc.Node.
func (relayed) Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return nil, notRelayed()
}

// Join is part of rpc.Node.
func (relayed) Join(context.Context, *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return nil, notRelayed()
}

// ProveServer is part of rpc.Node.
func (relayed) ProveServer(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return nil, notRelayed()
}

// Enroll is part of rpc.Node.
func (relayed) Enroll(context.Context, *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	return nil, notRelayed()
}
