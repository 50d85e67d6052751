package admin

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// authority is what `lockfs ca list --json` prints of each.
type authority struct {
	Fingerprint string    `json:"fingerprint"` // SHA-256 of its certificate, hexadecimal
	Signs       bool      `json:"signs"`       // the certificates of hosts now; the others are only trusted
	Added       time.Time `json:"added"`       // cluster time
}

func caCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "List or replace the authority that signs the certificates of hosts"}
	return cli.Parent(cmd, caListCommand(), caRotateCommand())
}

func caListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the authorities that are trusted",
		Long: `List the authorities that are trusted: the one that signs, and after lockfs ca rotate those before it, until every host
has a certificate of the new one.`,
		Example: "  lockfs ca list",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				found, err := authorities(ctx, admin)
				if err != nil {
					return err
				}
				list := make([]authority, len(found))
				for i, a := range found {
					list[i] = authority{
						Fingerprint: fmt.Sprintf("%x", a.GetFingerprint()), Signs: i == 0,
						Added: time.Unix(0, a.GetAdded()).UTC(),
					}
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), list)
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "STATE\tADDED\tFINGERPRINT")
				for _, a := range list {
					state := "trusted"
					if a.Signs {
						state = "signs"
					}
					fmt.Fprintf(table, "%s\t%s\t%s\n", state, a.Added.Format(time.RFC3339), a.Fingerprint)
				}
				return table.Flush()
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func caRotateCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the authority that signs",
		Long: `Replace the authority that signs the certificates of hosts by a new one. All hosts that run get a certificate of it by
themselves within minutes, without losing a connection; one that is off gets its own when it is back. Both authorities are
trusted until no host that belongs to the cluster has a certificate of the old one: see lockfs ca list. Tokens that were
made before go on working.

Do it when the key of the authority may be known to somebody. A host that was let in by such a somebody is another
matter: see lockfs host admitted, and lockfs host revoke.

` + needsAdministrator,
		Example: "  lockfs ca rotate && lockfs ca list",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				err := change(ctx, admin, &storepb.Op{Op: &storepb.Op_AddAuthority{AddAuthority: &storepb.AddAuthority{}}})
				if err != nil {
					return err
				}
				fingerprint, err := signing(ctx, admin)
				if err != nil {
					return err
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"signs": fingerprint.String()})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "authority %s signs now\n", fingerprint)
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}
