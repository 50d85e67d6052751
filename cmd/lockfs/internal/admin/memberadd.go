package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// addition is the output of `lockfs member add --json`.
type addition struct {
	Token   *Token `json:"token,omitempty"` // nil with --insecure
	Command string `json:"command"`         // to run on the new server
}

func memberAddCommand() *cobra.Command {
	var flags cli.ClusterFlags
	plan := TokenPlan{Role: identity.Server, Uses: 1}
	withoutVote := false
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Print how to add a server",
		Long: `Create a join token for a new server, and print the command line that starts it.
The server joins without a vote and gets one when it has caught up. With
--nonvoter it stays without a vote until lockfs member promote: it has a full
copy and serves its mount, backups and metrics.

A cluster without certificates (--insecure) has no tokens; the printed command
line then has --join.

` + needsAdministrator,
		Example: "  lockfs member add\n  lockfs member add --nonvoter --host d",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := plan.check(); err != nil {
				return err
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				nodes, err := admin.Status(ctx, false)
				if err != nil {
					return err
				}
				made, err := planAddition(ctx, admin, &plan, nodes)
				if err != nil {
					return err
				}
				if withoutVote {
					made.Command += " --nonvoter"
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), made)
				}
				fmt.Fprintln(cmd.OutOrStdout(), made.Command)
				if warning := WarnOfVoters(votersOf(nodes) + 1); warning != "" && !withoutVote {
					fmt.Fprintln(cmd.ErrOrStderr(), "with the new server, "+warning+warning)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&withoutVote, "nonvoter", false, "the server stays without a vote")
	cmd.Flags().StringVar(&plan.Host, "host", "", "name of the only host for the token")
	cmd.Flags().DurationVar(&plan.TTL, "ttl", time.Hour, "validity of the token")
	flags.Add(cmd.Flags())
	return cmd
}

func planAddition(ctx context.Context, admin *cluster.Admin, plan *TokenPlan, nodes []cluster.NodeStatus) (*addition, error) {
	const command = "lockfs server --data /var/lib/lockfs --mount /locks --addr HOST:7420"
	if slices.ContainsFunc(nodes, func(n cluster.NodeStatus) bool { return n.Status.GetInsecure() }) {
		var addresses []string
		for _, node := range nodes {
			if node.Address != "" {
				addresses = append(addresses, node.Address)
			}
		}
		return &addition{Command: command + " --insecure --join " + strings.Join(addresses, ",")}, nil
	}
	if !slices.ContainsFunc(nodes, func(n cluster.NodeStatus) bool { return n.Address != "" }) {
		return nil, errors.New("no server can join this cluster because its only node has no address: start that one with --addr or --advertise")
	}
	token, err := CreateToken(ctx, admin, plan)
	if err != nil {
		return nil, err
	}
	return &addition{Token: token, Command: command + " --token " + token.Token}, nil
}
