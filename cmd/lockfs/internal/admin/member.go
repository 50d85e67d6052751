package admin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
)

// member is an element of the output of `lockfs member list --json`.
type member struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	State   string `json:"state"` // voter; non-voter; joining: no vote yet
	Address string `json:"address"`
	// DeadSince is the leader's last contact with a dead member, within the leader's raft term.
	DeadSince *time.Time `json:"dead_since,omitempty"`
}

func memberCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "member", Short: "List, add, replace or remove servers"}
	return cli.Parent(cmd, memberListCommand(), memberAddCommand(), memberReplaceCommand(), memberRemoveCommand(),
		memberPromoteCommand(), memberDemoteCommand())
}

func memberListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the members",
		Long: `List the servers of the cluster. A joining server gets its vote when it has
caught up; the leader drops a joining server that it cannot reach. A non-voter
has a full copy but no vote until lockfs member promote. A member is dead when
the leader has had no contact for ten seconds.`,
		Example: "  lockfs member list",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				found, err := admin.Members(ctx)
				if err != nil {
					return err
				}
				silences := admin.Silences(ctx)
				members := make([]member, len(found))
				for i, m := range found {
					members[i] = member{m.GetName(), m.GetId(), stateOf(m.Voter, m.Joining), m.GetAddress(), nil}
					if silent := silences[m.GetId()]; silent >= deadAfter {
						since := time.Now().Add(-silent).UTC().Truncate(time.Second)
						members[i].DeadSince = &since
					}
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), members)
				}
				table := cli.NewTable(cmd.OutOrStdout())
				fmt.Fprintln(table, "NAME\tSTATE\tADDRESS\tID")
				for _, m := range members {
					state := m.State
					if m.DeadSince != nil {
						state += ", dead since " + m.DeadSince.Format(time.RFC3339)
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Name, state, m.Address, m.ID)
				}
				return table.Flush()
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func memberRemoveCommand() *cobra.Command {
	force := false
	cmd := memberChangeCommand(&memberChange{
		Use: "remove NAME", Short: "Remove a member from the cluster",
		Long: `Remove a member, running or not, and revoke its host. The leader can be removed
too: another server becomes leader. To bring the server back, give it an empty
data directory and a new join token (with --insecure: --join).

Calls in progress on its mount get five seconds to finish. After that, or if the
host is cut off or hangs, a call there may fail although it took effect.

Its disk has the key of the CA: if others may get it, run lockfs ca rotate then.

The command refuses if the other voters could not reach a quorum, unless you
give --force.`,
		Example: "  lockfs member remove c", args: 1, did: "removed",
		do: func(ctx context.Context, admin *cluster.Admin, args []string) error {
			return admin.Remove(ctx, args[0], force)
		},
	})
	cmd.Flags().BoolVar(&force, "force", false, "also if the other voters have no quorum without it")
	return cmd
}

func memberReplaceCommand() *cobra.Command {
	return memberChangeCommand(&memberChange{
		Use: "replace OLD NEW", Short: "Remove a member after another one has taken its place",
		Long: `Remove the member OLD after NEW has caught up and has a vote. The number of
voters never falls meanwhile. NEW must have joined before (lockfs member add),
with or without a vote. The command waits for --timeout; you can repeat it. Like
lockfs member remove, it revokes OLD.`,
		Example: "  lockfs member replace a d --timeout 10m", args: 2, did: "replaced",
		do: func(ctx context.Context, admin *cluster.Admin, args []string) error {
			members, err := admin.Members(ctx)
			if err != nil {
				return err
			}
			for _, name := range args {
				if !slices.ContainsFunc(members, func(m cluster.Member) bool { return m.GetName() == name || m.GetId() == name }) {
					return fmt.Errorf("no member is named %s; see `lockfs member list`", cli.Word(name))
				}
			}
			return admin.Replace(ctx, args[0], args[1])
		},
	})
}

func memberPromoteCommand() *cobra.Command {
	return memberChangeCommand(&memberChange{
		Use: "promote NAME", Short: "Give a member a vote",
		Long: `Give a non-voter a vote after it has caught up. The command waits for --timeout;
you can repeat it.`,
		Example: "  lockfs member promote d", args: 1, did: "promoted",
		do: func(ctx context.Context, admin *cluster.Admin, args []string) error {
			return admin.SetVote(ctx, args[0], true, false)
		},
	})
}

func memberDemoteCommand() *cobra.Command {
	force := false
	cmd := memberChangeCommand(&memberChange{
		Use: "demote NAME", Short: "Take a member's vote",
		Long: `Take a member's vote. The member keeps a full copy, and serves its mount,
backups and metrics, but no longer counts for a quorum.

The command refuses if the other voters could not reach a quorum, unless you
give --force.`,
		Example: "  lockfs member demote d", args: 1, did: "demoted",
		do: func(ctx context.Context, admin *cluster.Admin, args []string) error {
			return admin.SetVote(ctx, args[0], false, force)
		},
	})
	cmd.Flags().BoolVar(&force, "force", false, "also if the other voters have no quorum without it")
	return cmd
}

// memberChange is a command for changes of the members or their votes.
type memberChange struct {
	Use, Short, Long, Example string

	args      int
	did       string // past tense for the first member
	catchesUp int    // 1-based index in args of the member that has to catch up; 0: none
	do        func(context.Context, *cluster.Admin, []string) error
}

// perform runs the change and prints the progress.
func (c *memberChange) perform(ctx context.Context, admin *cluster.Admin, flags *cli.ClusterFlags, args []string) error {
	if c.catchesUp == 0 {
		defer waitingForAnswer(flags)()
	} else {
		defer cli.WaitingFor(ctx, os.Stderr, func(ctx context.Context) string {
			nodes, err := admin.Status(ctx, false)
			return catchingUp(args[c.catchesUp-1], nodes, err)
		})()
	}
	return c.do(ctx, admin, args)
}

// catchingUp describes how far the member with a name or ID is behind the leader.
func catchingUp(name string, nodes []cluster.NodeStatus, err error) string {
	newcomer := slices.IndexFunc(nodes, func(n cluster.NodeStatus) bool { return n.Name == name || n.ID == name })
	leader := leaderOf(nodes)
	switch {
	case err != nil || leader == nil:
		return "waiting for the cluster's reply"
	case newcomer < 0 || nodes[newcomer].Err != nil:
		return fmt.Sprintf("waiting for a reply from %s", cli.Word(name))
	}
	applied, committed := nodes[newcomer].Status.GetAppliedIndex(), leader.GetCommitIndex()
	return fmt.Sprintf("%s is catching up: it has applied entry %d of %d", cli.Word(name), min(applied, committed), committed)
}

func memberChangeCommand(c *memberChange) *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, Args: cli.Exactly(c.args, c.args),
		RunE: func(cmd *cobra.Command, args []string) error {
			return quietly(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				if err := c.perform(ctx, admin, &flags, args); err != nil {
					return fmt.Errorf("%s %s: %w", cmd.Name(), args[0], err)
				}
				warning := ""
				if members, err := admin.Members(ctx); err == nil {
					warning = WarnOfVoters(CountVoters(members))
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{c.did: args[0]})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", c.did, args[0])
				if warning != "" {
					fmt.Fprintln(cmd.ErrOrStderr(), warning)
				}
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}
