package lockhistory

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockfs/raftstore/storepb"
)

// Evidence of an expiry, in the words of the state machine.
var (
	timeOver    = regexp.MustCompile(`^its time was over at (\S+)$`)
	processGone = regexp.MustCompile(`^its process \d+ on (.+) (?:is gone|exited with status \d+|was ended by signal \d+)$`)
	hostBooted  = regexp.MustCompile(`^its host (.+) has booted since$`)
	hostSilent  = regexp.MustCompile(`^its host (.+) has been silent for more than (\S+) \(rule .+\)$`)
	hostGone    = regexp.MustCompile(`^its host (.+) was declared gone for good$`)
)

// doubtEvidence returns the error in the reason of lock_stale or lock_removed; empty: none.
func doubtEvidence(e *storepb.Event) string {
	reason := e.GetReason()
	if reason == "" {
		return "no evidence is given for its expiry"
	}
	if over := timeOver.FindStringSubmatch(reason); over != nil {
		at, err := time.Parse(time.RFC3339Nano, over[1])
		switch {
		case err != nil:
			return fmt.Sprintf("the evidence for its expiry is no time: %q", reason)
		case at.UnixNano() >= e.GetTime():
			return fmt.Sprintf("it expired before its time: %s, at %s", reason, time.Unix(0, e.GetTime()).UTC().Format(time.RFC3339Nano))
		}
		return ""
	}
	for _, known := range []*regexp.Regexp{processGone, hostBooted, hostSilent, hostGone} {
		if known.MatchString(reason) {
			return ""
		}
	}
	return fmt.Sprintf("its expiry has no evidence that is known: %q", reason)
}

// hostOfGone returns the host an expiry requires to be declared gone; empty: none.
func hostOfGone(e *storepb.Event) string {
	if found := hostGone.FindStringSubmatch(e.GetReason()); found != nil {
		return found[1]
	}
	return ""
}

// byForce reports whether a lock_removed is of a caller, not of lockfs itself.
func byForce(e *storepb.Event) bool {
	return e.GetBy() != nil && strings.HasPrefix(e.GetReason(), "by force")
}

// gaps are the numbers of events after missing ones, and of events with which a cluster continues a lost one.
// Earlier events say nothing about later ones.
type gaps []uint64

func gapsOf(events []*storepb.Event) (all gaps) {
	for i, e := range events {
		if i > 0 && (e.GetNumber() != events[i-1].GetNumber()+1 || len(e.GetBefore()) == 0 && e.GetEvent() == "cluster_begun") {
			all = append(all, e.GetNumber())
		}
	}
	return all
}

func (all gaps) before(e *storepb.Event) int {
	i, _ := slices.BinarySearch(all, e.GetNumber()+1)
	return i
}
