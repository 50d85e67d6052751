package admin

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
)

// member is what `lockfs member list --json` prints of each.
type member struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	State   string `json:"state"` // voter; joining: it has no vote yet
	Address string `json:"address"`
}

func memberCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "member", Short: "List or remove the members of a cluster"}
	return cli.Parent(cmd, memberListCommand(), memberRemoveCommand())
}

func memberListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the members",
		Long: `List the members. One that is joining has no vote until it has caught up; one that is not reached is dropped
after a while.`,
		Example: "  lockfs member list",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				found, err := admin.Members(ctx)
				if err != nil {
					return err
				}
				members := make([]member, len(found))
				for i, m := range found {
					members[i] = member{m.GetName(), m.GetId(), "voter", m.GetAddress()}
					if m.Joining {
						members[i].State = joining
					}
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), members)
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "NAME\tSTATE\tADDRESS\tID")
				for _, m := range members {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Name, m.State, m.Address, m.ID)
				}
				return table.Flush()
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func memberRemoveCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a member out of the cluster",
		Long: `Take a member out of the cluster, whether it is running or not. Stop it first: a node that was removed has
no part in the cluster any more. To bring it back, give it an empty data directory and a new join token
(with --insecure: --join).`,
		Example: "  lockfs member remove c",
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				if err := admin.Remove(ctx, args[0]); err != nil {
					return fmt.Errorf("remove %s: %w", args[0], err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"removed": args[0]})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", args[0])
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}
