package cluster

import (
	"time"

	"lockfs/cluster/clusterpb"
)

// lagInterval is how often a node measures how far its state is behind the log.
const lagInterval = time.Second

func (n *Node) observeCommit(took time.Duration) {
	n.cfg.Metrics.commits.Observe(took.Seconds())
	n.latency.recordCommit(took)
}

func (n *Node) observeWrite(took time.Duration) {
	n.cfg.Metrics.writes.Observe(took.Seconds())
	n.latency.recordWrite(took)
}

// sample runs until the node is closed.
func (n *Node) sample() {
	looks := time.NewTicker(lagInterval)
	defer looks.Stop()
	ends := time.NewTicker(sampleTime)
	defer ends.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-looks.C:
			if commit, applied := n.raft.CommitIndex(), n.raft.AppliedIndex(); commit > applied {
				n.latency.recordLag(commit - applied)
			}
		case now := <-ends.C:
			n.latency.closeSample(now)
		}
	}
}

// votersSeen returns nil unless this node leads.
func (n *Node) votersSeen() (seen []*clusterpb.VoterSeen) {
	term := n.leadership.term()
	if term == 0 {
		return nil
	}
	offsets := n.clock.offsets(n.dir.ID)
	silences := n.readIndex.lastContact.sinceContact(term, time.Now(), n.raft.VoterIDs())
	silences[n.dir.ID] = 0
	for _, id := range n.raft.VoterIDs() {
		seen = append(seen, &clusterpb.VoterSeen{Id: id, ClockOffset: int64(offsets[id]), Silent: int64(silences[id])})
	}
	return seen
}
