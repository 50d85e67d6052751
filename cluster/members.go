package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
)

// configChangeTimeout bounds the wait for a place in raft's queue, not for the change itself.
const configChangeTimeout = 5 * time.Second

func (n *Node) self() *storepb.Member {
	return &storepb.Member{
		Id: n.id.ID, Name: n.id.Name, RaftAddress: n.id.RaftAddress, ApiAddress: n.cfg.APIAddress,
	}
}

func (n *Node) members() (members []*storepb.Member) {
	n.fsm.View(func(ns *raftstore.Namespace) { members = ns.Members() })
	return members
}

// member answers nil for an id that is not known.
func (n *Node) member(id string) (member *storepb.Member) {
	n.fsm.View(func(ns *raftstore.Namespace) { member = ns.Member(id) })
	return member
}

func (n *Node) apiAddress(id string) string { return n.member(id).GetApiAddress() }

// raftServers answers those of raft's newest configuration, committed or not, as raft itself uses it.
func (n *Node) raftServers() []raft.Server {
	return slices.Clone(n.raft.GetConfiguration().Configuration().Servers) // raft's own
}

// raftServer answers nil for an id that is not in raft's newest configuration.
func (n *Node) raftServer(id string) *raft.Server {
	for _, server := range n.raftServers() {
		if string(server.ID) == id {
			return &server
		}
	}
	return nil
}

func (n *Node) voterIDs() []string {
	var ids []string
	for _, server := range n.raftServers() {
		if server.Suffrage == raft.Voter {
			ids = append(ids, string(server.ID))
		}
	}
	return ids
}

// voters answers the voters; one that is not known as a member has only an id.
func (n *Node) voters() []*storepb.Member {
	ids := n.voterIDs()
	voters := make([]*storepb.Member, len(ids))
	n.fsm.View(func(ns *raftstore.Namespace) {
		for i, id := range ids {
			if voters[i] = ns.Member(id); voters[i] == nil {
				voters[i] = &storepb.Member{Id: id}
			}
		}
	})
	return voters
}

func checkMember(m *storepb.Member) error {
	if !nodeName.MatchString(m.GetName()) || m.GetId() == "" {
		return fmt.Errorf("a member needs a name and an id, not %q and %q", m.GetName(), m.GetId())
	}
	return errors.Join(checkAdvertised("raft address", m.GetRaftAddress()), checkAdvertised("API address", m.GetApiAddress()))
}

// Remove takes a member out by its name, or by its raft id.
func (n *Node) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	name := req.GetName()
	return n.administer(ctx, func() (*storepb.Result, error) {
		id := n.memberID(name)
		known := n.raftServer(id)
		switch {
		case id == "":
			return &storepb.Result{
				Code: storepb.Code_NOT_FOUND, Message: fmt.Sprintf("no member is named %q; see `lockfs member list`", name),
			}, nil
		case known != nil && known.Suffrage == raft.Voter && len(n.voterIDs()) == 1:
			return &storepb.Result{
				Code: storepb.Code_NOT_PERMITTED, Message: fmt.Sprintf("%q is the only member; stop it instead", name),
			}, nil
		}
		return &storepb.Result{}, n.takeOut(ctx, id, "it was removed by an administrator")
	}), nil
}

// memberID answers the id of a member by its name, or by that id, also of one that is only left in raft's configuration or only
// in the state; "": there is none.
func (n *Node) memberID(name string) string {
	for _, member := range n.members() {
		if member.GetName() == name || member.GetId() == name {
			return member.GetId()
		}
	}
	if n.raftServer(name) != nil {
		return name
	}
	return ""
}

// removalLook is how often a node that hears from no leader asks whether it is still a member.
const removalLook = 5 * time.Second

var errRemoved = errors.New("this node was removed from the cluster; to bring it back, start it with --join and an empty data directory")

// noticeRemoval ends a node that has been taken out: nobody tells it, it only hears no leader any more.
func (n *Node) noticeRemoval() {
	if n.raft.State() == raft.Shutdown && n.ctx.Err() == nil {
		n.fail(errRemoved) // it led, and removed itself
		return
	}
	if _, leader := n.raft.LeaderWithID(); leader != "" || !n.id.Joined {
		return
	}
	// One that has just started may not know the members yet.
	asked := slices.Clone(n.cfg.Join)
	for _, member := range n.members() {
		asked = append(asked, member.GetApiAddress())
	}
	for _, address := range asked {
		removed, leader := n.removedAsSays(address)
		if !removed && leader != "" && !slices.Contains(asked, leader) {
			removed, _ = n.removedAsSays(leader)
		}
		if removed {
			n.fail(errRemoved)
			return
		}
	}
}

// removedAsSays asks at an API address whether this node was removed, and who leads. Only the present leader knows, and only of
// what is committed: one that was deposed meanwhile may have tried to remove this node, and all others may count on it. A leader
// of whom this node has never heard may be another cluster's.
func (n *Node) removedAsSays(address string) (removed bool, leader string) {
	ctx, cancel := context.WithTimeout(n.ctx, rpc.AttemptTimeout)
	defer cancel()
	status, err := n.peers.Node(address).Status(ctx, &clusterpb.StatusRequest{Confirm: true})
	if err != nil || n.raftServer(status.GetId()) == nil {
		return false, status.GetLeaderAddress()
	}
	return status.GetConfirmed() && !slices.Contains(status.GetVoters(), n.id.ID), status.GetLeaderAddress()
}

// confirmConfiguration returns nil once it is sure that this node led when it was called and that the newest configuration
// before that is committed.
func (n *Node) confirmConfiguration(ctx context.Context) error {
	return waitConfigChange(ctx, n.raft.Barrier(configChangeTimeout))
}

// administer runs a change that an administrator asks for if this node leads, one at a time.
func (n *Node) administer(ctx context.Context, change func() (*storepb.Result, error)) *clusterpb.AdminReply {
	term, leader := n.awaitLeader(ctx)
	if term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	n.adminMu.Lock()
	defer n.adminMu.Unlock()
	result, err := change()
	if err != nil {
		n.logger.Warn("a change by an administrator failed", "error", err)
	}
	return &clusterpb.AdminReply{Outcome: outcomeOf(err), Result: result}
}

// waitConfigChange sorts raft's errors like those of a command. Asking again is safe: a change that
// was made already is made once more to the same effect.
func waitConfigChange(ctx context.Context, future raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- future.Error() }()
	select {
	case err := <-done:
		if err != nil {
			return raftstore.SortRaftError(err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", raftstore.ErrUnknown, ctx.Err())
	}
}
