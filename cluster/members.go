package cluster

import (
	"slices"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// members is who belongs to the cluster. Raft's configuration says who it is and who has a vote, the state where he is reached.
type members struct {
	dir              *consensus.Directory // whose this node is
	raft             *consensus.Raft
	learnedAddresses *consensus.LearnedAddresses // where they were met, if that is not where the state has them
	// versions are those of a cluster that this node's program knows.
	versions version.Range
}

// own is this node.
func (m *members) own() *storepb.Member {
	return &storepb.Member{
		Id: m.dir.ID, Name: m.dir.Name, Address: m.dir.Address, OldestVersion: m.versions.Oldest, NewestVersion: m.versions.Newest,
		Instance: uint64(m.dir.Instance()),
	}
}

func (m *members) all() (all []*storepb.Member) {
	m.raft.FSM.View(func(ns *namespace.Namespace) { all = ns.Members() })
	return all
}

// get answers nil for an id that is not known.
func (m *members) get(id string) (member *storepb.Member) {
	m.raft.FSM.View(func(ns *namespace.Namespace) { member = ns.Member(id) })
	return member
}

// leader answers who leads as far as this node knows, "": nobody, and where that one says itself that it is: where others have met it may
// have been before.
func (m *members) leader() (id, address string) {
	at, leader := m.raft.LeaderWithID()
	if string(leader) == m.dir.ID {
		return m.dir.ID, m.dir.Address
	}
	return string(leader), string(at)
}

// isOut tells whether raft's newest configuration, which need not be committed, has this node no more.
func (m *members) isOut() bool { return m.dir.HasJoined() && m.raft.Server(m.dir.ID) == nil }

func (m *members) address(id string) string { return m.addressOf(id, m.get(id).GetAddress()) }

// addressOf is where a member was met, or else where the state has it.
func (m *members) addressOf(id, recorded string) string {
	if known := m.raft.Server(id); known != nil {
		if met := m.learnedAddresses.Of(known.ID, known.Address); met != known.Address {
			return string(met)
		}
	}
	return recorded
}

// whereabouts returns where this node reaches each server of raft's newest configuration, itself included.
func (m *members) whereabouts() (known []*clusterpb.ServerAddress) {
	leader, at := m.leader()
	for _, server := range m.raft.Servers() {
		address := m.address(string(server.ID))
		switch {
		case string(server.ID) == m.dir.ID:
			address = m.dir.Address
		case string(server.ID) == leader && at != "":
			address = at
		}
		if address != "" {
			known = append(known, &clusterpb.ServerAddress{Id: string(server.ID), Address: address})
		}
	}
	return known
}

// voters answers the voters; one that is not known as a member has only an id.
func (m *members) voters() []*storepb.Member {
	ids := m.raft.VoterIDs()
	voters := make([]*storepb.Member, len(ids))
	m.raft.FSM.View(func(ns *namespace.Namespace) {
		for i, id := range ids {
			if voters[i] = ns.Member(id); voters[i] == nil {
				voters[i] = &storepb.Member{Id: id}
			}
			if address := m.addressOf(id, voters[i].GetAddress()); address != voters[i].GetAddress() {
				voters[i] = &storepb.Member{Id: id, Name: voters[i].GetName(), Address: address}
			}
		}
	})
	return voters
}

// addresses are those of the voters.
func (m *members) addresses() (addresses []string) {
	for _, voter := range m.voters() {
		if voter.GetAddress() != "" {
			addresses = append(addresses, voter.GetAddress())
		}
	}
	return addresses
}

// isVoter reports whether a server has a vote, by its name.
func (m *members) isVoter(name string) bool {
	return slices.ContainsFunc(m.voters(), func(voter *storepb.Member) bool { return voter.GetName() == name })
}

// find answers the id of a member by its name, or by that id, also of one that is only left in raft's configuration or only
// in the state; "": there is none.
func (m *members) find(name string) string {
	for _, member := range m.all() {
		if member.GetName() == name || member.GetId() == name {
			return member.GetId()
		}
	}
	if m.raft.Server(name) != nil {
		return name
	}
	return ""
}
