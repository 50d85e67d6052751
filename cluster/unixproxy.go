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

// Proxy answers callers on the unix sockets of a host. It knows them by uid, and calls the cluster for
// them with the permissions of the host, so users need neither certificate nor address. Root and the
// daemon's user have the host's permissions. Other users may read, limited to their view of the mount.
type Proxy struct {
	host           string
	local          rpc.Node // node of this process; nil: none
	peers          *rpc.Peers
	router         *rpc.Router
	rootPermission permission // of root
	logger         *slog.Logger
	count          func(role, what string)
	metrics        *MountMetrics // with the budgets of this process, or nil
}

// NewProxy returns the proxy of a host that only mounts. security is nil for an insecure cluster, where
// root has all permissions.
func NewProxy(host string, servers []string, security *rpc.Security, logger *slog.Logger) *Proxy {
	peers := rpc.NewPeers(security)
	r := &Proxy{
		host: host, peers: peers, router: rpc.NewRoamingRouter(peers, peers.Nodes(servers)...), rootPermission: forMounts, logger: logger,
	}
	if security == nil {
		r.rootPermission = forServers
	}
	return r
}

// Proxy returns the proxy of a node. It ends with the node.
func (n *Node) Proxy() *Proxy {
	return &Proxy{
		host: n.dir.Name, local: n, peers: n.peers, router: n.router, rootPermission: forServers, logger: n.logger,
		count: n.cfg.Metrics.refused, metrics: n.cfg.Metrics.MountMetrics,
	}
}

// ShowBudgets adds the budgets of this process to lists of budgets.
func (p *Proxy) ShowBudgets(metrics *MountMetrics) { p.metrics = metrics }

// Close closes the connections of NewProxy.
func (p *Proxy) Close() { p.peers.Close() }

// Server answers on unix sockets. The caller closes it.
func (p *Proxy) Server() *rpc.Server {
	return rpc.NewSocketServer(p.InProcess(), func() {}, func(rpc.Caller) {})
}

// InProcess answers callers of this process, named by the context (rpc.RoleUser), with the permissions
// they would have on a socket.
func (p *Proxy) InProcess() rpc.Node {
	return &authorizer{node: proxied{p}, grant: p.permissionOf, onRefusal: newRefusalLog(p.logger, p.count).note}
}

func (p *Proxy) permissionOf(caller rpc.Caller) permission {
	if p.isRoot(caller) {
		return p.rootPermission
	}
	return grantedPermission(caller)
}

// MayAdminister reports whether a caller of [Proxy.InProcess] may change rules, members, and locks of
// others.
func (p *Proxy) MayAdminister(caller rpc.Caller) bool { return p.permissionOf(caller) >= forServers }

// Host is the name of this host in events.
func (p *Proxy) Host() string { return p.host }

func (p *Proxy) isRoot(caller rpc.Caller) bool {
	return caller.Role == rpc.RoleUser && (caller.UID == 0 || int(caller.UID) == os.Geteuid())
}

var _ rpc.Node = proxied{}

// proxied passes authorized calls on, as calls of this process.
type proxied struct{ *Proxy }

// forward calls the leader.
func forward[Request any, Reply rpc.Answer](
	ctx context.Context, r *Proxy, method func(rpc.Node, context.Context, Request) (Reply, error), request Request, undone Reply,
) (Reply, error) {
	reply, err := rpc.Ask(rpc.WithCaller(ctx, rpc.Caller{}), r.router, method, request)
	if refused := new(rpc.RefusedError); err == nil || errors.As(err, &refused) {
		return reply, err
	}
	return undone, nil
}

// Execute is part of rpc.Node. Commands need a session, so they are for mounts.
func (p proxied) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	query := req.GetQuery()
	if query == nil {
		return nil, errNotProxied()
	}
	if caller := rpc.CallerOf(ctx); !p.isRoot(caller) {
		setViewer(query, &storepb.Viewer{Uid: caller.UID, Gid: caller.GID, Groups: caller.Groups, MoreGroups: caller.Groups == nil})
	}
	asked := &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}}
	reply, err := forward(ctx, p.Proxy, rpc.Node.Execute, asked, &clusterpb.ExecuteReply{Outcome: clusterpb.Outcome_NOT_DONE})
	if list := reply.GetResult(); query.GetListQuotas().GetBudgets() && list.GetCode() == storepb.Code_OK && p.metrics != nil {
		list.Budgets = append(list.Budgets, p.metrics.budgetUses(p.host)...)
	}
	return reply, err
}

// setViewer overwrites the viewer of a query.
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
func (p proxied) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return forward(ctx, p.Proxy, rpc.Node.Sessions, req, &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_DONE})
}

// Remove is part of rpc.Node.
func (p proxied) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	req.Caller = p.callerOf(ctx, req.GetCaller())
	return forward(ctx, p.Proxy, rpc.Node.Remove, req, &clusterpb.AdminReply{Outcome: clusterpb.Outcome_UNKNOWN})
}

// SetVote is part of rpc.Node.
func (p proxied) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	req.Caller = p.callerOf(ctx, req.GetCaller())
	return forward(ctx, p.Proxy, rpc.Node.SetVote, req, &clusterpb.AdminReply{Outcome: clusterpb.Outcome_UNKNOWN})
}

// Change is part of rpc.Node.
func (p proxied) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	req.Caller = p.callerOf(ctx, req.GetCaller())
	return forward(ctx, p.Proxy, rpc.Node.Change, req, &clusterpb.AdminReply{Outcome: clusterpb.Outcome_UNKNOWN})
}

// Backup is part of rpc.Node. Only root on a server may ask for one, and gets it from that server.
func (p proxied) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	if p.local == nil {
		return nil, errNotProxied()
	}
	return p.local.Backup(rpc.WithCaller(ctx, rpc.Caller{}), req)
}

// callerOf returns the caller for the audit trail.
func (p *Proxy) callerOf(ctx context.Context, said *storepb.Caller) *storepb.Caller {
	caller := rpc.CallerOf(ctx)
	return &storepb.Caller{Host: p.host, Uid: caller.UID, Gid: caller.GID, Pid: said.GetPid()}
}

// Status is part of rpc.Node.
func (p proxied) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	ctx = rpc.WithCaller(ctx, rpc.Caller{})
	asked := &clusterpb.StatusRequest{Hash: req.GetHash(), Confirm: req.GetConfirm(), Recent: req.GetRecent()}
	if req.GetMember() == "" {
		return p.askAny(ctx, asked)
	}
	known, err := p.askAny(ctx, new(clusterpb.StatusRequest))
	if err != nil {
		return nil, err
	}
	if p.local != nil && (known.GetId() == req.GetMember() || known.GetName() == req.GetMember()) {
		return p.local.Status(ctx, asked)
	}
	for _, member := range known.GetMembers() {
		if member.GetId() == req.GetMember() || member.GetName() == req.GetMember() {
			reply, err := statusOfMember(ctx, p.peers.Node(member.GetAddress()), member.GetId(), p.otherServers(member, known), asked)
			return reply, asRefusal(err)
		}
	}
	return nil, refuse(storepb.Code_NOT_FOUND, fmt.Sprintf("no member is called %q", req.GetMember()))
}

// otherServers returns the servers besides a member and the one of this process.
func (p *Proxy) otherServers(member *storepb.Member, known *clusterpb.StatusReply) (others []rpc.Node) {
	for _, other := range known.GetMembers() {
		if own := p.local != nil && other.GetId() == known.GetId(); !own && other.GetId() != member.GetId() && other.GetAddress() != "" {
			others = append(others, p.peers.Node(other.GetAddress()))
		}
	}
	return others
}

// askAny asks the node of this process, or else the known servers until one answers.
func (p *Proxy) askAny(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	if p.local != nil {
		return p.local.Status(ctx, req)
	}
	var failed error
	for _, node := range append([]rpc.Node{p.router.AnyNode()}, p.router.Entries()...) {
		attempt, cancel := context.WithTimeout(ctx, connectWait)
		reply, err := node.Status(attempt, req)
		cancel()
		if err == nil {
			p.router.SetMembers(addressesOf(reply))
			return reply, nil
		}
		failed = err
	}
	return nil, asRefusal(fmt.Errorf("no server answers: %w", failed))
}

// connectWait is less than the timeout of a command, which leaves time for another server.
const connectWait = rpc.AttemptTimeout / 4

func addressesOf(status *clusterpb.StatusReply) (addresses []string) {
	for _, member := range status.GetMembers() {
		addresses = append(addresses, member.GetAddress())
	}
	return addresses
}

// asRefusal turns an error into one that a caller can read.
func asRefusal(err error) error {
	if refused := new(rpc.RefusedError); err == nil || errors.As(err, &refused) {
		return err
	}
	return refuse(storepb.Code_NOT_FOUND, err.Error())
}

// KeepAlive is part of rpc.Node. Like the methods below, it is not for sockets.
func (proxied) KeepAlive(context.Context, *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return nil, errNotProxied()
}

// Lease is part of rpc.Node.
func (proxied) Lease(context.Context, *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	return nil, errNotProxied()
}

// Removals is part of rpc.Node.
func (proxied) Removals(context.Context, *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	return nil, errNotProxied()
}

// AwaitRelease is part of rpc.Node.
func (proxied) AwaitRelease(context.Context, *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	return nil, errNotProxied()
}

// ReleaseQuestions is part of rpc.Node.
func (proxied) ReleaseQuestions(context.Context, *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	return nil, errNotProxied()
}

// EndedWaits is part of rpc.Node.
func (proxied) EndedWaits(context.Context, *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	return nil, errNotProxied()
}

// Probe is part of rpc.Node.
func (proxied) Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return nil, errNotProxied()
}

// Join is part of rpc.Node.
func (proxied) Join(context.Context, *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return nil, errNotProxied()
}

// ProveServer is part of rpc.Node.
func (proxied) ProveServer(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return nil, errNotProxied()
}

// Enroll is part of rpc.Node.
func (proxied) Enroll(context.Context, *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	return nil, errNotProxied()
}
