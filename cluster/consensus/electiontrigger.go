package consensus

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// minSilence is how long a leader is silent at least before it is looked for: as long as raft itself takes it to be there.
	minSilence = heartbeatTimeout
	// electionSpread is within which time followers look that heard it at the same moment: two that stood for election at once would
	// have half of the votes each.
	electionSpread = 300 * time.Millisecond
	// probeTimeout is how long its host may take to say that nobody is there.
	probeTimeout = 500 * time.Millisecond
)

// electionTrigger has a follower stand for election as soon as it is certain that its leader's process has ended: it has been silent for a
// heartbeat timeout, and its host refuses connections. Raft alone looks at moments of its own, when up to three heartbeat timeouts have
// passed, which is right for a leader that is only slow. That one, or one that is stopped or cut off, refuses nothing, and raft decides
// as ever. Whoever is wrong disturbs nobody: a voter that hears a leader does not vote for another one (pre-vote).
//
// A process that was stopped itself, and so has heard nobody, waits once more before it believes that.
type electionTrigger struct {
	heard func() (leader raft.ServerAddress, silent time.Duration) // no leader: there is none, or this is no follower
	dial  func(raft.ServerAddress) error
	stand func()
}

// WatchLeader goes on until raft is closed.
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

// look answers when to look again. late is by how much this moment is later than it should have been.
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

// startElection makes raft look at once whether its heartbeat timeout is over: it does when that is set to less than before.
func (r *Raft) startElection() {
	usual := r.ReloadableConfig()
	longer := usual
	longer.HeartbeatTimeout += time.Millisecond
	longer.ElectionTimeout += time.Millisecond // raft wants it to be no shorter
	for _, config := range []raft.ReloadableConfig{longer, usual} {
		if err := r.ReloadConfig(config); err != nil {
			r.cfg.Logger.Warn("raft does not look for its leader", "error", err)
			return
		}
	}
}

// ElectSingleVoter has the only voter lead at once: it has nobody to wait for. It is to be called once everything is there that a leader needs.
func (r *Raft) ElectSingleVoter() {
	if voters := r.VoterIDs(); len(voters) == 1 && voters[0] == string(r.id) {
		r.startElection()
	}
}
