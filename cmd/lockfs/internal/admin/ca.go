package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// authority is an element of the output of `lockfs ca list --json`.
type authority struct {
	Fingerprint string    `json:"fingerprint"` // SHA-256 of the certificate, hexadecimal
	Signs       bool      `json:"signs"`       // false: only trusted
	Added       time.Time `json:"added"`       // cluster time
}

func caCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "List or rotate the certificate authority (CA)"}
	return cli.Parent(cmd, caListCommand(), caRotateCommand())
}

func caListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List trusted CAs",
		Long: `List the trusted CAs: the signing one and, after lockfs ca rotate, its
predecessors, until every host has a certificate of the new CA.`,
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
				table := cli.NewTable(cmd.OutOrStdout())
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
		Short: "Rotate the CA",
		Long: `Replace the CA by a new one. Running hosts renew their certificates within
minutes, without losing a connection. A host that is off renews when it is back.
The cluster trusts both CAs until no member or host has a certificate of the old
one; lockfs ca list shows the progress. Join tokens stay valid. ca.key on each
server is replaced: keep a copy of the new one for later backups.

Rotate the CA when its key may have leaked, as after you have removed a server
with a disk that others may have. Then also look for unknown hosts with lockfs host
admitted, revoke them with lockfs host revoke, and revoke join tokens from
before with lockfs token revoke.

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
				fmt.Fprintf(cmd.OutOrStdout(), "CA %s signs certificates now\n", fingerprint)
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

// authorities returns the trusted CAs, the signing one first.
func authorities(ctx context.Context, admin *cluster.Admin) ([]*storepb.Authority, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAuthorities{ListAuthorities: &storepb.ListAuthorities{}}})
	return result.GetAuthorities(), err
}

// signing returns the fingerprint of the signing CA.
func signing(ctx context.Context, admin *cluster.Admin) (identity.Fingerprint, error) {
	found, err := authorities(ctx, admin)
	if err != nil {
		return identity.Fingerprint{}, err
	}
	if len(found) == 0 {
		return identity.Fingerprint{}, errors.New("the cluster has no CA because its servers run with --insecure: start them without it to use certificates")
	}
	return identity.Fingerprint(found[0].GetFingerprint()), nil
}
