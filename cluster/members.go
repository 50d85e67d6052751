package cluster

import (
	"slices"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// members are the members of the cluster. Raft's configuration has their ids and votes, the state their
// addresses.
type members struct {
	dir              *consensus.Directory // of this node
	raft             *consensus.Raft
	learnedAddresses *consensus.LearnedAddresses // newer than the addresses in the state
	// versions are the cluster versions known to this program.
	versions version.Range
}

// own returns the record of this node.
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

// get returns nil for an unknown id.
func (m *members) get(id string) (member *storepb.Member) {
	m.raft.FSM.View(func(ns *namespace.Namespace) { member = ns.Member(id) })
	return member
}

// leader returns the leader known to this node, at the address of its own messages; "": none. An address
// learned from others may be older.
func (m *members) leader() (id, address string) {
	at, leader := m.raft.LeaderWithID()
	if string(leader) == m.dir.ID {
		return m.dir.ID, m.dir.Address
	}
	return string(leader), string(at)
}

// isOut reports whether raft's newest configuration, committed or not, lacks this node.
func (m *members) isOut() bool { return m.dir.HasJoined() && m.raft.Server(m.dir.ID) == nil }

func (m *members) address(id string) string { return m.addressOf(id, m.get(id).GetAddress()) }

// addressOf returns the learned address of a member, or else the recorded one.
func (m *members) addressOf(id, recorded string) string {
	if known := m.raft.Server(id); known != nil {
		if met := m.learnedAddresses.Of(known.ID, known.Address); met != known.Address {
			return string(met)
		}
	}
	return recorded
}

// whereabouts returns the address of each server in raft's newest configuration, itself included.
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

// voters returns the voters. One without a member record has only an id.
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

// addresses returns the addresses of the voters.
func (m *members) addresses() (addresses []string) {
	for _, voter := range m.voters() {
		if voter.GetAddress() != "" {
			addresses = append(addresses, voter.GetAddress())
		}
	}
	return addresses
}

// isVoter reports whether the server with a name has a vote.
func (m *members) isVoter(name string) bool {
	return slices.ContainsFunc(m.voters(), func(voter *storepb.Member) bool { return voter.GetName() == name })
}

// find returns the id of a member by its name or id, also if it is left only in raft's configuration or
// only in the state; "": there is none.
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
