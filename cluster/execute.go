package cluster

import (
	"context"
	"errors"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// Execute does a command or query if this node leads, or names the leader.
func (n *Node) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if outcome := n.acceptsClusterID(req.GetCluster()); outcome != clusterpb.Outcome_DONE {
		return &clusterpb.ExecuteReply{Outcome: outcome, Cluster: n.clusterIDFor(outcome)}, nil
	}
	reply, err := n.execute(ctx, req)
	if err == nil {
		reply.Cluster, reply.Voters = n.dir.ClusterID(), n.raft.VotersNumber()
	}
	return reply, err
}

func (n *Node) execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	n.identityCheck.restrictViewer(rpc.CallerOf(ctx), req.GetQuery())
	if result := n.fsm.QuerySince(req.GetQuery()); result != nil {
		return &clusterpb.ExecuteReply{Result: result}, nil
	}
	term, leader := n.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.ExecuteReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	began := time.Now()
	reply := new(clusterpb.ExecuteReply)
	switch r := req.GetRequest().(type) {
	case *clusterpb.ExecuteRequest_Query:
		confirmed := n.readIndex.confirmedBy(req, term)
		if !confirmed && n.readIndex.isQuorumWith(req.GetProbed(), req.GetProbedInstance()) {
			confirmed, reply.Term = true, uint64(term)
		}
		result, given, err := n.query(ctx, term, r.Query, confirmed, n.wantedLease(ctx, req))
		reply.Outcome, reply.Result = outcomeOf(err), result
		reply.Lease, reply.LeaseLasts = given.generation, int64(given.lasts)
	case *clusterpb.ExecuteRequest_Command:
		var refused error
		if reply, refused = n.command(ctx, term, req); refused != nil {
			return nil, refused
		}
	default:
		reply.Result = n.malformed("neither a command nor a query")
	}
	n.cfg.Metrics.observeRequest(req, reply, time.Since(began))
	return reply, nil
}

// command does a command, and answers the queries that came along (package lease).
func (n *Node) command(ctx context.Context, term ids.Term, req *clusterpb.ExecuteRequest) (reply *clusterpb.ExecuteReply, refused error) {
	cmd := req.GetCommand()
	if wrong := mayCommand(cmd); wrong != "" {
		return &clusterpb.ExecuteReply{Result: n.malformed(wrong)}, nil
	}
	if err := n.identityCheck.checkCommand(rpc.CallerOf(ctx), cmd); err != nil {
		return nil, err
	}
	open := cmd.GetOp().GetOpenSession()
	if open != nil {
		open.Silence = int64(n.sessions.deadlines.ttl)
	}
	prefetch := n.leaseGate.beginPrefetch(n.wantedLease(ctx, req), req)
	result, err := n.store.Propose(ctx, cmd)
	isCommitted := err == nil
	if open != nil && result.GetCode() == storepb.Code_BUSY {
		n.sessions.clones.refused(open, rpc.CallerOf(ctx), readClocks().mono)
	}
	if result, err = notBeforeItsVersion(result, err); errors.Is(err, codec.ErrNewer) || errors.Is(err, codec.ErrOlder) {
		n.cfg.Metrics.malformed.Inc()
		n.newer.Do(func() { n.logger.Error("a mount sent a request unknown to this server", "error", err) })
	}
	reply = &clusterpb.ExecuteReply{Outcome: outcomeOf(err), Result: result}
	if isCommitted && n.clusterVersion() == version.Newest { // else a query may be unknown to the cluster
		reply.Also = n.leaseGate.answerPrefetch(prefetch, result, func() bool { return n.stillLeads(term) })
	}
	return reply, nil
}

// wantedLease returns the lease request of a query; zero: none, or not permitted.
func (n *Node) wantedLease(ctx context.Context, req *clusterpb.ExecuteRequest) lease.Request {
	wanted := lease.Request{
		Holder: lease.Holder{Session: ids.Session(req.GetLease()), Client: req.GetClient()}, Retired: req.GetSpent(), Asked: req.GetAsked(),
	}
	if wanted.Session == 0 {
		return lease.Request{}
	}
	if _, err := n.identityCheck.checkSession(rpc.CallerOf(ctx), wanted.Session); err != nil {
		return lease.Request{}
	}
	return wanted
}

// eventWait is how long a query waits for new events. It is below rpc.AttemptTimeout.
const eventWait = time.Second

func (n *Node) query(
	ctx context.Context, term ids.Term, query *storepb.Query, confirmed bool, wanted lease.Request,
) (*storepb.Result, grantedLease, error) {
	if at := n.clusterVersion(); at < version.Newest { // else the cluster knows every query of this program
		if err := codec.CheckMaySend(query, at); err != nil {
			result, err := notBeforeItsVersion(nil, err)
			return result, grantedLease{}, err
		}
	}
	if request := query.GetAwaitLock(); request != nil {
		result, err := n.awaitLock(ctx, term, request)
		return result, grantedLease{}, err
	}
	if events := query.GetListEvents(); events.GetWait() {
		wait, cancel := context.WithTimeout(ctx, eventWait)
		_ = n.fsm.WaitFor(wait, func(ns *namespace.Namespace) bool { return ns.LastEvent() > events.GetAfter() })
		cancel()
	}
	if !confirmed && (wanted.Session != 0 || !n.hasApplied(query.GetSince())) {
		if err := n.readIndex.confirm(ctx); err != nil {
			return nil, grantedLease{}, notAnswered(err)
		}
	}
	result, given, err := n.leaseGate.query(ctx, func() bool { return n.stillLeads(term) }, query, wanted)
	return result, given, notAnswered(err)
}

// stillLeads reports whether this node leads in a term. That is a term report like those of others.
func (n *Node) stillLeads(term ids.Term) bool {
	own, _ := n.termReports.report()
	return own == term && n.leadership.term() == term
}

// hasApplied reports whether this node's state is new enough for a query; 0: the newest is wanted.
func (n *Node) hasApplied(since uint64) (applied bool) {
	n.fsm.View(func(ns *namespace.Namespace) { applied = since != 0 && ids.Index(since) <= ns.Index() })
	return applied
}

func (n *Node) malformed(message string) *storepb.Result {
	n.cfg.Metrics.malformed.Inc()
	return &storepb.Result{Code: storepb.Code_INVALID, Message: message}
}

// mayCommand returns the fault of a command from outside, or "".
func mayCommand(cmd *storepb.Command) string {
	if cmd.GetSession() == 0 {
		return "a command needs a session"
	}
	switch cmd.GetOp().GetOp().(type) {
	case nil:
		if len(cmd.GetOp().ProtoReflect().GetUnknown()) == 0 { // else it is of a newer version, and is not proposed
			return "a command needs an operation"
		}
	case *storepb.Op_SetMember, *storepb.Op_RemoveMember, *storepb.Op_SetLimits, *storepb.Op_EndSession,
		*storepb.Op_SetRule, *storepb.Op_DeleteRule, *storepb.Op_ForgetHost, *storepb.Op_Tick, *storepb.Op_SetCluster, *storepb.Op_AddAuthority,
		*storepb.Op_DropAuthority, *storepb.Op_PutToken, *storepb.Op_DeleteToken, *storepb.Op_AdmitHost, *storepb.Op_RevokeHost, *storepb.Op_NoteRefusal,
		*storepb.Op_SetVersion, *storepb.Op_RaiseAlarm, *storepb.Op_ClearAlarm, *storepb.Op_FreezeState,
		*storepb.Op_SetQuota, *storepb.Op_DeleteQuota:
		return "that is for the leader itself to do"
	}
	return ""
}

// awaitLock returns the state of a lock request. A lock is committed; any other answer needs a quorum
// round: a mount that knows of an end from a newer leader would wait for ever if a deposed one said
// "waiting".
func (n *Node) awaitLock(ctx context.Context, term ids.Term, request *storepb.AwaitLock) (*storepb.Result, error) {
	result, err := n.fsm.AwaitLock(request)
	if err == nil && result.GetCode() != storepb.Code_OK {
		if err = n.readIndex.confirm(ctx); err == nil {
			result, err = n.fsm.AwaitLock(request)
		}
	}
	if err == nil && !n.stillLeads(term) {
		err = errNoQuorum // see leaseGate.query
	}
	if err == nil {
		err = n.leaseGate.waitAllRevoked(n.ctx)
	}
	return result, notAnswered(err)
}

// EndedWaits is part of rpc.Node.
func (n *Node) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	question := &raftstore.WaitsQuestion{
		Session: ids.Session(req.GetSession()), After: ids.Index(req.GetAfter()), Names: namespace.NameFilter(req.GetNames()),
		NamesAfter: ids.Index(req.GetNamesAfter()), Events: req.GetEvents(), LastEvent: req.GetLastEvent(),
	}
	if _, err := n.identityCheck.checkSession(rpc.CallerOf(ctx), question.Session); err != nil {
		return nil, err
	}
	if !question.Names.IsValid() {
		return nil, &rpc.RefusedError{Result: n.malformed("the names waited for are no filter of a known size")}
	}
	term, leader := n.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.EndedWaitsReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	waiting, cancel := n.waits.begin(ctx, question.Session)
	defer cancel()
	waits, err := n.fsm.EndedWaits(waiting, question)
	if err == nil && !n.stillLeads(term) {
		err = errNoQuorum // see leaseGate.query
	}
	if err == nil { // even the index tells programs of changes: they list locks again
		err = n.leaseGate.waitAllRevoked(n.ctx)
	}
	if err != nil {
		return &clusterpb.EndedWaitsReply{Outcome: outcomeOf(notAnswered(err))}, nil
	}
	return &clusterpb.EndedWaitsReply{
		Index: uint64(waits.Index), Whole: waits.Whole, Waiting: waits.Waiting, Granted: numbersOf(waits.Granted), Ended: numbersOf(waits.Ended),
		Names: numbersOf(waits.Names), Missed: waits.Missed, LastEvent: waits.LastEvent,
	}, nil
}

func numbersOf[N ~uint64](list []N) (numbers []uint64) {
	for _, number := range list {
		numbers = append(numbers, uint64(number))
	}
	return numbers
}
