package admin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

func noteCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "note [TEXT]",
		Short: "Show or set a note for all who administer the cluster",
		Long: `Show or replace the note for all administrators: one text of at most 1 KiB, such
as the maintenance in progress. An empty TEXT removes the note.`,
		Example: `  lockfs note "the switch in rack 2 is replaced on Monday"`,
		Args:    cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				if len(args) == 1 {
					op := &storepb.Op{Op: &storepb.Op_SetNote{SetNote: &storepb.SetNote{Text: args[0]}}}
					if err := change(ctx, admin, op); err != nil {
						return fmt.Errorf("set the note: %w", err)
					}
				}
				result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_GetNote{GetNote: &storepb.GetNote{}}})
				if err != nil {
					return fmt.Errorf("get the note: %w", err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"note": result.GetNote()})
				}
				fmt.Fprintln(cmd.OutOrStdout(), cli.Text(result.GetNote()))
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}
