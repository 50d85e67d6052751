package rpc

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
)

// How long a router waits before it tries the direct way to a server again: at once after a first failure, since the server may only
// have been slow. If calls fail there again although a trial succeeded, it waits longer each time.
const (
	firstRetry   = time.Second
	longestRetry = 30 * time.Second
	stableAfter  = time.Minute // a server that was reachable for so long is tried at once again
)

// detours are the ways of a router to a leader that it cannot reach itself. Its lock is held whenever they are used.
type detours struct {
	lock    sync.Locker // of the router
	report  func(leader, via string)
	via     Node             // that forwards; nil: none does
	leader  Node             // to which it forwards
	left    int              // how many servers did not forward, since one did
	outages map[Node]*outage // of servers that cannot be reached, or could not
}

// outage is a time in which a server cannot be reached.
type outage struct {
	over     time.Time // when it ended; zero: it goes on
	pause    time.Duration
	retry    time.Time // when to try the direct way
	retrying bool
}

func newDetours(lock sync.Locker, report func(leader, via string)) *detours {
	return &detours{lock: lock, report: report, outages: make(map[Node]*outage)}
}

// isOut reports whether a server cannot be reached, and sees to it that this is found out anew from time to time.
func (d *detours) isOut(node Node) bool {
	o := d.outages[node]
	if o == nil || !o.over.IsZero() {
		return false
	}
	d.tryDirectly(node, o)
	return true
}

// begin begins an outage.
func (d *detours) begin(node Node, now time.Time) {
	o := d.outages[node]
	switch {
	case o == nil || !o.over.IsZero() && now.Sub(o.over) > stableAfter:
		d.outages[node] = &outage{retry: now}
	case !o.over.IsZero():
		o.over, o.pause = time.Time{}, min(max(2*o.pause, firstRetry), longestRetry)
		o.retry = now.Add(o.pause)
	}
}

// reached ends an outage.
func (d *detours) reached(node Node) {
	o := d.outages[node]
	if o == nil || !o.over.IsZero() {
		return
	}
	o.over = time.Now()
	if d.via != nil && d.leader == node {
		d.via = nil
		d.report(serverAddress(node), "")
	}
}

// leave gives up a server that does not forward.
func (d *detours) leave(via Node) {
	if d.via == via {
		d.via = nil
		d.left++
	}
}

// to returns the one of some servers that is to forward calls to a leader; nil: the leader can be reached, or there is no such server.
func (d *detours) to(leader Node, servers func() []Node) Node {
	if !d.isOut(leader) {
		return nil
	}
	candidates := d.forwarders(leader, servers())
	if len(candidates) == 0 {
		return nil
	}
	if !slices.Contains(candidates, d.via) {
		d.via = candidates[d.left%len(candidates)]
		d.report(serverAddress(leader), serverAddress(d.via))
	}
	d.leader = leader
	return d.via
}

// forwarders are those of some servers that may forward to a leader.
func (d *detours) forwarders(leader Node, servers []Node) []Node {
	return slices.DeleteFunc(servers, func(node Node) bool { return node == leader || d.isOut(node) })
}

// tryDirectly probes a server that could not be reached, if it is time for that, and ends its outage if anything comes from it.
func (d *detours) tryDirectly(node Node, o *outage) {
	if o.retrying || time.Now().Before(o.retry) {
		return
	}
	o.retrying = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), ProbeTimeout)
		defer cancel()
		_, err := node.Probe(ctx, new(clusterpb.ProbeRequest))
		d.lock.Lock()
		defer d.lock.Unlock()
		o.retrying, o.retry = false, time.Now().Add(firstRetry)
		if err == nil || isFinal(err) { // a refusal is an answer
			d.reached(node)
		}
	}()
}

// serverAddress returns "" for a node of this process.
func serverAddress(node Node) string {
	if remote, is := node.(*Client); is {
		return remote.calls.address
	}
	return ""
}
