package admin

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// admission is what `lockfs host admitted --json` prints of each.
type admission struct {
	Name       string    `json:"name"`
	Role       string    `json:"role"`     // server, client
	State      string    `json:"state"`    // admitted; expired: its certificate is over, and it renews that when it is back; revoked
	Admitted   time.Time `json:"admitted"` // cluster time at which its key came in
	NotAfter   time.Time `json:"not_after"`
	Authority  string    `json:"authority"` // fingerprint
	Token      string    `json:"token,omitempty"`
	SquashRoot bool      `json:"squash_root,omitempty"`
}

func hostAdmittedCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "admitted",
		Short: "List the hosts that may connect, and those that may no more",
		Long: `List the hosts that were let into the cluster, with the token that they came with and how long their certificate is good,
and those that were revoked. (lockfs host list has the hosts that have mounts.)

` + needsAdministrator,
		Example: `  lockfs host admitted
  lockfs host admitted --json | jq -r '.[] | select(.role == "server") | .name'`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				nodes, err := admin.Status(ctx, false)
				if err != nil {
					return err
				}
				hosts, err := listAdmissions(ctx, admin, summarize(nodes).Time)
				if err != nil {
					return err
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), hosts)
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "NAME\tROLE\tSTATE\tADMITTED\tCERTIFICATE UNTIL\tTOKEN\tROOT")
				for _, h := range hosts {
					root := "root"
					if h.SquashRoot {
						root = "nobody"
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Word(h.Name), h.Role, h.State, h.Admitted.Format(time.RFC3339),
						h.NotAfter.Format(time.RFC3339), orDash(h.Token), root)
				}
				return table.Flush()
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

// listAdmissions asks for all pages.
func listAdmissions(ctx context.Context, admin *cluster.Admin, now time.Time) ([]admission, error) {
	hosts := []admission{}
	for after := ""; ; {
		result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAdmissions{
			ListAdmissions: &storepb.ListAdmissions{After: after},
		}})
		page := result.GetAdmissions()
		if err != nil || len(page) == 0 {
			return hosts, err
		}
		for _, a := range page {
			hosts = append(hosts, describeAdmission(a, now))
		}
		after = page[len(page)-1].GetName()
	}
}

func describeAdmission(a *storepb.Admission, now time.Time) admission {
	described := admission{
		Name: a.GetName(), Role: identity.Role(a.GetRole()).String(), State: "admitted", SquashRoot: a.GetSquashRoot(),
		Admitted: time.Unix(0, a.GetAdmitted()).UTC(), NotAfter: time.Unix(0, a.GetNotAfter()).UTC(),
		Authority: fmt.Sprintf("%x", a.GetAuthority()), Token: fmt.Sprintf("%x", a.GetTokenId()),
	}
	switch {
	case a.GetRevoked() != 0:
		described.State = "revoked"
	case now.After(described.NotAfter):
		described.State = "expired"
	}
	return described
}

func hostRevokeCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Shut a host out of the cluster",
		Long: `Shut a host out of the cluster: its connections are cut and its session ends within a second, and its key is never let in
again. Locks of its processes are held no longer than those of a mount that was given up on: its flock and fcntl locks
are free after the lock delay, and its lock files become stale as their format says (see lockfs host forget). The programs there
are not stopped, and may believe that they still have their locks.

A server is removed before it is revoked: lockfs member remove NAME does both. To let the host in again, under a new key:
lockfs token create --role client --host NAME.

` + needsAdministrator,
		Example: "  lockfs host revoke build-7",
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				if err := RevokeHost(ctx, admin, args[0]); err != nil {
					return fmt.Errorf("revoke host %s: %w", cli.Word(args[0]), err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"revoked": args[0]})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "revoked %s\n", cli.Word(args[0]))
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

// RevokeHost shuts a host out: without a name, this one.
func RevokeHost(ctx context.Context, admin *cluster.Admin, name string) error {
	return change(ctx, admin, &storepb.Op{Op: &storepb.Op_RevokeHost{RevokeHost: &storepb.RevokeHost{Name: name}}})
}
