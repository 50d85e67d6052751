package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// admission is an element of the output of `lockfs host admitted --json`.
type admission struct {
	Name       string    `json:"name"`
	Role       string    `json:"role"`     // server, client
	State      string    `json:"state"`    // admitted; expired: the certificate has expired, and the host renews it when it is back; revoked
	Admitted   time.Time `json:"admitted"` // cluster time of enrolment
	NotAfter   time.Time `json:"not_after"`
	Authority  string    `json:"authority"` // fingerprint of the CA
	Token      string    `json:"token,omitempty"`
	SquashRoot bool      `json:"squash_root,omitempty"`
}

func hostAdmittedCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "admitted",
		Short: "List enrolled and revoked hosts",
		Long: `List the hosts that have enrolled, with the join token they used and the expiry
of their certificate, and the revoked hosts. To see mounts, use lockfs host
list.

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
				hosts, err := listAdmissions(ctx, admin, latestTime(nodes))
				if err != nil {
					return err
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), hosts)
				}
				table := cli.NewTable(cmd.OutOrStdout())
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

// listAdmissions reads all pages of the list.
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
		Short: "Revoke the certificates of a host",
		Long: `Revoke a host: its connections are cut and its session ends within a second. The
cluster never accepts its key again.

Its flock and fcntl locks are free after the lock delay. Its lock files become
stale by the rules of their format, as after lockfs host forget. Programs on the
host go on running, and may believe that they still hold their locks.

To revoke a server, use lockfs member remove NAME, which also removes it from
the members. To enrol the host again, create a token with lockfs token create
--role client --host NAME.

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

// RevokeHost revokes a host; without a name, this one.
func RevokeHost(ctx context.Context, admin *cluster.Admin, name string) error {
	return change(ctx, admin, &storepb.Op{Op: &storepb.Op_RevokeHost{RevokeHost: &storepb.RevokeHost{Name: name}}})
}
