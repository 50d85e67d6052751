package consensus

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// minSilence is the least silence of a leader before it is probed, the same as raft's own timeout.
	minSilence = heartbeatTimeout
	// electionSpread spreads the probes of followers that lost contact at the same moment: two candidates
	// at once would split the votes.
	electionSpread = 300 * time.Millisecond
	// probeTimeout is how long the leader's host may take to refuse the connection.
	probeTimeout = 500 * time.Millisecond
)

// electionTrigger starts an election early if the leader's process has surely ended: it has been silent
// for a heartbeat timeout, and its host refuses connections. Raft alone waits up to three heartbeat
// timeouts, which suits a slow leader. A slow, stopped or unreachable leader does not refuse connections,
// and raft decides as usual. A mistake does no harm: a voter in contact with a leader rejects other
// candidates (pre-vote).
//
// A follower that was stopped itself waits once more.
type electionTrigger struct {
	heard func() (leader raft.ServerAddress, silent time.Duration) // no leader: none is known, or this is no follower
	dial  func(raft.ServerAddress) error
	stand func()
}

// WatchLeader runs until raft is closed.
func (r *Raft) WatchLeader() {
	if r.cfg.Network == nil {
		return
	}
	watch := electionTrigger{heard: r.heardLeader, dial: r.dialOnce, stand: r.startElection}
	timer := time.NewTimer(minSilence)
	defer timer.Stop()
	for due := time.Now().Add(minSilence); ; {
		select {
		case <-timer.C:
		case <-r.files.disk.stopped:
			return
		}
		wait := watch.look(time.Since(due))
		timer.Reset(wait)
		due = time.Now().Add(wait)
	}
}

// look returns the pause until the next look. late is the delay of this call.
func (t electionTrigger) look(late time.Duration) (again time.Duration) {
	leader, silent := t.heard()
	switch {
	case leader == "":
		return minSilence
	case silent < minSilence:
		return minSilence - silent + rand.N(electionSpread)
	case late > electionSpread:
		return electionSpread
	}
	if errors.Is(t.dial(leader), syscall.ECONNREFUSED) {
		if now, silent := t.heard(); now == leader && silent >= minSilence {
			t.stand()
		}
	}
	return minSilence
}

func (r *Raft) heardLeader() (leader raft.ServerAddress, silent time.Duration) {
	if r.State() != raft.Follower {
		return "", 0
	}
	leader, _ = r.LeaderWithID()
	return leader, time.Since(r.LastContact())
}

func (r *Raft) dialOnce(address raft.ServerAddress) error {
	conn, err := r.cfg.Network.Dial(address, probeTimeout)
	if err != nil {
		return err
	}
	return conn.Close()
}

// startElection makes raft check its heartbeat timeout now: a shorter timeout than before has this effect.
func (r *Raft) startElection() {
	usual := r.ReloadableConfig()
	longer := usual
	longer.HeartbeatTimeout += time.Millisecond
	longer.ElectionTimeout += time.Millisecond // raft requires it to be no shorter
	for _, config := range []raft.ReloadableConfig{longer, usual} {
		if err := r.ReloadConfig(config); err != nil {
			r.cfg.Logger.Warn("raft does not look for its leader", "error", err)
			return
		}
	}
}

// ElectSingleVoter makes the only voter lead at once. Call it once everything is ready for a leader.
func (r *Raft) ElectSingleVoter() {
	if voters := r.VoterIDs(); len(voters) == 1 && voters[0] == string(r.id) {
		r.startElection()
	}
}
