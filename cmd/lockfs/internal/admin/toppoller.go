package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/page"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/pause"
	"lockfs/raftstore/storepb"
)

// lookout polls the cluster.
type lookout struct {
	flags *cli.ClusterFlags
	root  string // of the mount that serves locks and events; empty: the cluster does

	mu     sync.Mutex
	events []*storepb.Event // the latest, in order
}

func (l *lookout) look(ctx context.Context) desk {
	d := desk{at: time.Now()}
	d.err = quietly(ctx, l.flags, func(ctx context.Context, admin *cluster.Admin) error {
		healthy, nodes, err := admin.Health(ctx, false)
		if err != nil {
			return err
		}
		status := summarize(healthy, nodes)
		d.clusterTime, d.members, d.banner = status.Time, status.Nodes, bannerOf(status)
		if !healthy.Confirmed {
			return errors.New(healthy.String())
		}
		if err := d.ask(ctx, admin, nodes); err != nil {
			return err
		}
		if l.root != "" {
			d.locks, err = locksOn(l.root, "")
		} else {
			d.locks, err = findLocks(ctx, admin, "")
		}
		slices.SortStableFunc(d.locks, byTrouble)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	d.events = slices.Clone(l.events)
	return d
}

// bannerOf returns the part of the banner from the members' status.
func bannerOf(status *clusterStatus) page.Banner {
	banner := page.Banner{Leader: status.Leader, Term: status.Term, Health: status.Health}
	if status.Insecure {
		banner.Warning = "insecure: every program that reaches a server's port has all rights"
	}
	return banner
}

// ask requests data of the leader.
func (d *desk) ask(ctx context.Context, admin *cluster.Admin, nodes []cluster.NodeStatus) error {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListHosts{ListHosts: &storepb.ListHosts{}}})
	if err != nil {
		return err
	}
	for _, record := range result.GetHosts() {
		h := describeHost(record)
		d.hosts = append(d.hosts, h)
		if h.State == "unreachable" {
			d.banner.Silent = append(d.banner.Silent, h.Name)
		}
	}
	slices.SortStableFunc(d.hosts, func(a, b host) int { // unreachable is the last state
		return cmp.Or(strings.Compare(b.State, a.State), strings.Compare(a.Name, b.Name))
	})
	if result, err = admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAlarms{ListAlarms: &storepb.ListAlarms{}}}); err != nil {
		return err
	}
	for _, a := range result.GetAlarms() {
		d.banner.Alarms = append(d.banner.Alarms, fmt.Sprintf("%s: %s", a.GetKind(), a.GetText()))
	}
	sessions, err := admin.Sessions(ctx)
	d.sessions = describeSessions(sessions)
	d.banner.Spread, d.banner.Clocks = page.Spread(leaderOf(nodes), sessions)
	return err
}

// leaderOf returns the status of the leader, or nil.
func leaderOf(nodes []cluster.NodeStatus) (leader *clusterpb.StatusReply) {
	for _, node := range nodes {
		if node.Status.GetState() == "leader" && node.Status.GetTerm() >= leader.GetTerm() {
			leader = node.Status
		}
	}
	return leader
}

// followEvents keeps the latest events until ctx ends, and retries after errors.
func (l *lookout) followEvents(ctx context.Context) {
	reader := &eventReader{follow: true, viewer: cli.Self()}
	for ; ctx.Err() == nil; _ = pause.For(ctx, watchInterval) {
		ask, done, err := askForEvents(ctx, l.flags, l.root)
		if err != nil {
			continue // the screen shows the error already
		}
		reader.ask = ask
		_ = reader.each(ctx, l.note)
		done()
	}
}

// keptEvents is the number of events to scroll through.
const keptEvents = 1000

func (l *lookout) note(events []*storepb.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, events...)
	l.events = slices.Clone(l.events[max(0, len(l.events)-keptEvents):])
	return nil
}
