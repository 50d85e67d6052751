package admin

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// host is an element of the output of `lockfs host list --json`.
type host struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // reachable, unreachable, left
	Since    time.Time `json:"since"` // cluster time at which its sessions began or ended
	Sessions uint32    `json:"sessions"`
	Locks    int       `json:"locks"` // held by its processes, as far as the user may see them
	BootID   string    `json:"boot_id"`
}

func hostCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "host", Short: "List, forget or revoke hosts"}
	return cli.Parent(cmd, hostListCommand(), hostAdmittedCommand(), hostForgetCommand(), hostRevokeCommand())
}

func hostListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the hosts that have a mount or may still hold locks",
		Long: `List the hosts. A reachable host has a mount that renews its session. A host has
left when its last mount was unmounted, and is unreachable when the mount no
longer answers. Processes on an unreachable host keep their locks, because they
may still be running. LOCKS counts the locks of a host that you may see; lockfs
locks --host NAME lists them.`,
		Example: `  lockfs host list
  lockfs host list --json | jq -r '.[] | select(.state == "unreachable") | .name'`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListHosts{ListHosts: &storepb.ListHosts{}}})
				if err != nil {
					return err
				}
				locks, err := findLocks(ctx, admin, "")
				if err != nil {
					return err
				}
				held := locksByHost(locks)
				hosts := make([]host, len(result.GetHosts()))
				for i, h := range result.GetHosts() {
					hosts[i] = describeHost(h)
					hosts[i].Locks = held[h.GetName()]
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), hosts)
				}
				return printHosts(cmd.OutOrStdout(), hosts)
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func describeHost(h *storepb.HostRecord) host {
	state := "unreachable"
	switch {
	case h.GetSessions() > 0:
		state = "reachable"
	case h.GetLeft():
		state = "left"
	}
	return host{
		Name: h.GetName(), State: state, Since: time.Unix(0, h.GetSince()).UTC(),
		Sessions: h.GetSessions(), BootID: h.GetBootId(),
	}
}

// locksByHost counts the names whose locks processes of each host hold, also those of unreachable hosts.
func locksByHost(locks []lockjson.Lock) map[string]int {
	held := make(map[string]int)
	for _, l := range locks {
		on := make(map[string]bool)
		if l.Host != "" && (l.State == "held" || l.State == "unreachable") {
			on[l.Host] = true
		}
		for _, a := range l.Advisory {
			if a.State == lockjson.AdvisoryHeld || a.State == lockjson.AdvisoryDelayed {
				on[a.Host] = true
			}
		}
		for host := range on {
			held[host]++
		}
	}
	return held
}

func printHosts(w io.Writer, hosts []host) error {
	table := cli.NewTable(w)
	fmt.Fprintln(table, "NAME\tSTATE\tSINCE\tSESSIONS\tLOCKS")
	for _, h := range hosts {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\n", cli.Word(h.Name), h.State, h.Since.Format(time.RFC3339), h.Sessions, h.Locks)
	}
	return table.Flush()
}

// forgotten is the output of `lockfs host forget --json`.
type forgotten struct {
	Host    string   `json:"forgotten"`
	Stale   []string `json:"stale"`   // paths of locks that became stale and stay
	Removed []string `json:"removed"` // paths of locks that were removed
}

func hostForgetCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Declare a host gone for good, so that its locks become stale",
		Long: `Declare a host gone for good. Every lock that lives as long as a process of that
host (formats beads and pid) becomes stale at once. lockfs then removes it,
unless a rule says otherwise.

Do this only when the host is switched off or will not come back: a process that
still runs there goes on as if it held its lock. The cluster refuses while the
host has a mount. A host that is only unreachable needs nothing: lockfs settles
its locks when it is back.`,
		Example: "  lockfs host forget build-7",
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				op := &storepb.Op_ForgetHost{ForgetHost: &storepb.ForgetHost{Name: args[0]}}
				if err := change(ctx, admin, &storepb.Op{Op: op}); err != nil {
					return fmt.Errorf("forget host %s: %w", cli.Word(args[0]), err)
				}
				report, err := reportForgotten(ctx, admin.Query, args[0])
				if err != nil {
					return fmt.Errorf("host %s is forgotten, but the state of its locks is unknown; see `lockfs events`: %w", cli.Word(args[0]), err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), report)
				}
				return report.print(cmd.OutOrStdout())
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

// reportForgotten finds the events of the command, which share one time.
func reportForgotten(ctx context.Context, ask askFunc, name string) (*forgotten, error) {
	report := &forgotten{Host: name, Stale: []string{}, Removed: []string{}}
	at := int64(0)
	reader := &eventReader{ask: ask, viewer: cli.Self()}
	err := reader.each(ctx, func(events []*storepb.Event) error {
		for _, e := range events {
			stale := len(report.Stale)
			switch path := string(e.GetPath()); {
			case e.GetHost() != name:
			case e.GetEvent() == "host_forgotten":
				at, report.Stale, report.Removed = e.GetTime(), []string{}, []string{}
			case e.GetTime() != at:
			case e.GetEvent() == "lock_stale":
				report.Stale = append(report.Stale, path)
			case e.GetEvent() == "lock_removed":
				if stale > 0 && report.Stale[stale-1] == path {
					report.Stale = report.Stale[:stale-1]
				}
				report.Removed = append(report.Removed, path)
			}
		}
		return nil
	})
	return report, err
}

func (f *forgotten) print(w io.Writer) error {
	fmt.Fprintf(w, "forgot %s (locks of its processes: %d removed, %d stale)\n", cli.Word(f.Host), len(f.Removed), len(f.Stale))
	table := cli.NewTable(w)
	for _, path := range f.Removed {
		fmt.Fprintf(table, "removed\t%s\n", cli.Word(path))
	}
	for _, path := range f.Stale {
		fmt.Fprintf(table, "stale\t%s\n", cli.Word(path))
	}
	return table.Flush()
}
