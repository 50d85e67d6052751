package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func eventsCommand() *cobra.Command {
	var (
		flags  cli.ClusterFlags
		follow bool
		since  string
	)
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print events of locks and hosts",
		Long: `Print events in order: number, cluster time, event, path, fencing token, holder,
caller and reason. The cluster keeps the last 10,000 events of locks, of
refusals and of administrators. Each server also writes all events to
audit.jsonl in its data directory, and those of administrators and refusals to
audit-admin.jsonl and audit-refusals.jsonl.

--since is the number of the first event, a time such as 2026-01-02T15:04:05Z,
or an age such as 10m. --follow prints new events until Ctrl-C. --json prints
one object a line, as in audit.jsonl.

` + whoSees + `
Events in a directory that is gone or has moved are for root, and for the callers.` + cli.More + `The events are

  lock_acquired        a program created a lock, or wrote its first content
  lock_released        a program removed its lock
  lock_stolen          another holder replaced a lock
  lock_stale           a lock expired, or its process ended
  lock_removed         lockfs removed a stale lock, or a user forced it
  removal_refused      lockfs refused to remove or overwrite a lock
  locked_file_removed  a program removed a file while others held its flock or
                       fcntl lock, or waited for it
  host_unreachable, host_back, host_forgotten, session_ended, alarm_raised,
  alarm_cleared
  cluster_begun        the cluster got its id; after a restore or recovery the
                       chain of hashes begins again
  rule_set, rule_deleted, quota_set, quota_deleted, member_added,
  member_removed, authority_added, authority_dropped, token_created,
  token_revoked, host_joined, host_revoked
                       an administrator changed the cluster
  join_refused         the cluster refused a host`,
		Example: `  lockfs events --since 10m
  lockfs events --follow --json | jq -r 'select(.event == "removal_refused") | .lock_path'`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := parseSince(since)
			if err != nil {
				return err
			}
			root := lookThrough(cmd, "")
			ask, done, err := askForEvents(cmd.Context(), &flags, root)
			if err != nil {
				return err
			}
			defer done()
			if from.ago != 0 {
				if from.time, err = ago(cmd.Context(), &flags, root, from.ago); err != nil {
					return err
				}
			}
			show := printEvent
			if flags.JSON {
				show = printEventJSON
			}
			reader := &eventReader{ask: ask, from: from, follow: follow, viewer: cli.Self(), notice: func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), "lockfs: "+format+"\n", args...)
			}}
			out := bufio.NewWriter(cmd.OutOrStdout())
			return reader.each(cmd.Context(), func(events []*storepb.Event) error {
				for _, e := range events {
					show(out, e)
				}
				return out.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "print new events until interrupted, without a time limit")
	cmd.Flags().StringVar(&since, "since", "", "first event: a number, a time, or an age such as 10m")
	flags.Add(cmd.Flags())
	return cmd
}

// since is the start of the list; the zero value is the oldest event.
type since struct {
	number uint64
	time   time.Time
	ago    time.Duration
}

func parseSince(s string) (since, error) {
	if s == "" {
		return since{}, nil
	}
	if number, err := strconv.ParseUint(s, 10, 64); err == nil {
		return since{number: max(number, 1)}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return since{ago: d}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return since{time: t}, nil
	}
	return since{}, fmt.Errorf("--since %q: give the number of an event, a time such as 2026-01-02T15:04:05Z, or a duration such as 10m", s)
}

// ago returns the time d before now by the cluster's clock, which dates events; this host's clock may be
// wrong.
func ago(ctx context.Context, flags *cli.ClusterFlags, root string, d time.Duration) (t time.Time, err error) {
	if root != "" {
		now, err := clusterTime(root)
		return now.Add(-d), err
	}
	err = withAdmin(ctx, flags, func(ctx context.Context, admin *cluster.Admin) error {
		nodes, err := admin.Status(ctx, false)
		if err != nil {
			return err
		}
		t = latestTime(nodes).Add(-d)
		return nil
	})
	return t, err
}

// askFunc is Admin.Query with a time limit.
type askFunc func(context.Context, *storepb.Query) (*storepb.Result, error)

// askForEvents returns a function for queries to a mount, or to the cluster without one. The caller calls
// done at the end.
func askForEvents(ctx context.Context, flags *cli.ClusterFlags, root string) (ask askFunc, done func(), err error) {
	if root != "" {
		return (&mountEvents{root: root}).ask, func() {}, nil
	}
	admin, asked, err := openAdmin(ctx, flags)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
		ctx, cancel := context.WithTimeout(ctx, flags.Timeout)
		defer cancel()
		result, err := admin.Query(ctx, query)
		return result, asked.Explain(err)
	}, admin.Close, nil
}

// eventReader reads events in order.
type eventReader struct {
	ask    askFunc
	from   since
	follow bool
	notice func(format string, args ...any) // may be nil

	viewer *storepb.Viewer
	began  bool
	after  uint64 // number of the last event seen
}

// eventLimit is the number of events in a request. A reply has room for more, so a shorter one has the last
// event.
const eventLimit = 500

// each calls handle with batches of events, up to the last event or, with follow, until ctx ends. With
// follow, only a refusal by the cluster is an error.
func (r *eventReader) each(ctx context.Context, handle func([]*storepb.Event) error) error {
	if r.notice == nil {
		r.notice = func(string, ...any) {}
	}
	if r.from.number > 0 {
		r.after = r.from.number - 1
	}
	silent := false
	for {
		result, err := r.ask(ctx, &storepb.Query{Query: &storepb.Query_ListEvents{
			ListEvents: &storepb.ListEvents{After: r.after, Limit: eventLimit, Wait: r.follow, Viewer: r.viewer},
		}})
		switch {
		case r.follow && ctx.Err() != nil:
			return nil
		case r.follow && errors.Is(err, context.DeadlineExceeded):
			if !silent {
				r.notice("no reply yet, retrying: %v", err)
			}
			silent = true
			continue
		case err != nil:
			return err
		}
		if silent {
			r.notice("the cluster replies again")
			silent = false
		}
		last := result.GetLastEvent()
		if !r.began && r.from.number > last+1 {
			r.notice("event %d does not exist yet; the last one is %d", r.from.number, last)
		}
		events := r.pick(result.GetEvents())
		r.began = true
		if len(result.GetEvents()) < eventLimit {
			r.after = max(r.after, last) // this viewer may not see the others
		}
		if len(events) > 0 {
			if err := handle(events); err != nil {
				return err
			}
		}
		if !r.follow && len(result.GetEvents()) < eventLimit {
			return nil
		}
	}
}

// pick drops events before the requested time, and reports missing ones.
func (r *eventReader) pick(events []*storepb.Event) []*storepb.Event {
	if len(events) == 0 {
		return nil
	}
	first := events[0]
	after := r.after
	switch {
	case r.began || r.from.number > 0:
	case !r.from.time.IsZero() && first.GetNumber() > 1 && first.GetTime() > r.from.time.UnixNano() && r.viewer.GetUid() == 0:
		r.notice("events before number %d are no longer kept: see audit.jsonl on the servers", first.GetNumber())
		fallthrough
	default:
		after = first.GetNumber() - 1
	}
	if r.viewer.GetUid() == 0 { // other users' lists have gaps
		r.noticeGaps(after, events)
	}
	r.after = events[len(events)-1].GetNumber()
	if !r.from.time.IsZero() {
		for len(events) > 0 && events[0].GetTime() < r.from.time.UnixNano() {
			events = events[1:]
		}
	}
	return events
}

// noticeGaps reports missing events once. The cluster drops lock events before administrative events and
// refusals.
func (r *eventReader) noticeGaps(after uint64, events []*storepb.Event) {
	first, last, gaps := uint64(0), uint64(0), 0
	for _, e := range events {
		if e.GetNumber() > after+1 {
			if gaps++; first == 0 {
				first = after + 1
			}
			last = e.GetNumber() - 1
		}
		after = e.GetNumber()
	}
	switch {
	case gaps == 1:
		r.notice("events %d to %d are no longer kept: see audit.jsonl on the servers", first, last)
	case gaps > 1:
		r.notice("some of the events %d to %d are no longer kept: see audit.jsonl on the servers", first, last)
	}
}

func printEventJSON(w io.Writer, e *storepb.Event) {
	fmt.Fprintf(w, "%s\n", lockjson.EventLine(e))
}

// printEvent prints an event as a line of text.
func printEvent(w io.Writer, e *storepb.Event) {
	at := time.Unix(0, e.GetTime()).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	fmt.Fprintf(w, "%-5d %s  %-16s", e.GetNumber(), at, e.GetEvent())
	if len(e.GetPath()) > 0 {
		fmt.Fprintf(w, "  %s", cli.Word(string(e.GetPath())))
	}
	fmt.Fprintf(w, "  %s", strings.Join(eventDetails(e), "; "))
	if e.GetReason() != "" {
		fmt.Fprintf(w, ": %s", cli.Text(e.GetReason()))
	}
	fmt.Fprintln(w)
}

func eventDetails(e *storepb.Event) (details []string) {
	if e.GetToken() != 0 {
		details = append(details, fmt.Sprintf("token %d", e.GetToken()), holderOf(e))
	} else if e.GetHost() != "" {
		details = append(details, "host "+cli.Word(e.GetHost()))
	}
	if p := e.GetPrevious(); p != nil {
		details = append(details, fmt.Sprintf("before: token %d, %s", p.GetToken(), holderOf(p)))
	}
	if by := e.GetBy(); by != nil {
		who := fmt.Sprintf("uid %d on %s", by.GetUid(), cli.Word(by.GetHost()))
		if by.GetPid() != 0 {
			who = fmt.Sprintf("pid %d, %s", by.GetPid(), who)
		}
		details = append(details, "by "+who)
	} else if e.GetEvent() == "lock_removed" {
		details = append(details, "by lockfs")
	}
	if e.GetRequest() != "" {
		details = append(details, "for request "+cli.Word(e.GetRequest()))
	}
	return details
}

func holderOf(e *storepb.Event) string {
	pid := ""
	if e.GetPid() != 0 {
		pid = strconv.Itoa(int(e.GetPid()))
	}
	return lockOf(e.GetFormat(), e.GetHolder(), e.GetHost(), pid)
}
