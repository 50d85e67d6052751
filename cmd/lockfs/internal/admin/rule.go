package admin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// rule is an element of the output of `lockfs rule list --json`. Settings of the format are left out.
type rule struct {
	Pattern     string  `json:"pattern"`
	Format      string  `json:"format,omitempty"`
	StaleAfter  float64 `json:"stale_after_seconds,omitempty"`
	OnStale     string  `json:"on_stale,omitempty"`
	Guard       string  `json:"guard,omitempty"`
	HostTimeout float64 `json:"host_timeout_seconds,omitempty"`
	Holder      string  `json:"holder,omitempty"`
	AnyFile     bool    `json:"any_file,omitempty"`
}

func ruleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rule",
		Short: "List, set or delete rules for locks by path pattern",
		Long: `A rule changes the treatment of locks by path pattern: when they become stale,
what lockfs does then, and which hosts may remove them. A rule takes effect on
all hosts at once, also for existing locks.

` + patternHelp,
	}
	return cli.Parent(cmd, ruleListCommand(), ruleSetCommand(), ruleDeleteCommand())
}

const patternHelp = `A pattern without a slash matches the last element of a path in any directory:
*.lock. A pattern with a slash matches the whole path from the root of the
mount: jobs/*/lock. * and ? match characters other than a slash, [a-z] one of a
class, and ** as a whole element any number of directories: jobs/**/*.lock. If
several patterns match, only the longest applies.`

func ruleListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the rules",
		Example: "  lockfs rule list",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				rules, err := listRules(ctx, admin)
				if err != nil {
					return err
				}
				if flags.JSON {
					described := make([]rule, len(rules))
					for i, r := range rules {
						described[i] = describeRule(r)
					}
					return cli.PrintJSON(cmd.OutOrStdout(), described)
				}
				return printRules(cmd.OutOrStdout(), rules)
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func ruleSetCommand() *cobra.Command {
	var (
		flags                   cli.ClusterFlags
		set                     storepb.Rule
		staleAfter, hostTimeout time.Duration
		yes                     bool
	)
	cmd := &cobra.Command{
		Use:   "set PATTERN",
		Short: "Set or replace the rule of a pattern",
		Long: `Set the rule of a pattern. It replaces the whole rule of that pattern: the
format decides everything you leave out. Durations look like 90s, 10m or
24h; 0 sets nothing.

` + patternHelp + `

The command first lists the existing names that match, with the effect on each.
If the rule would remove any of them, it needs --yes.` + cli.More + `The flags:

  --holder creator  the process that created the name is the holder, with any
                    content. When it ends, the lock is stale, and lockfs removes
                    it unless --on-stale is keep. If it ends at once (touch,
                    mkdir, mktemp), the holder is its nearest living ancestor in
                    its process group: the script
  --format F        only this format counts: tower, semaphore, swarm, beads, pid
                    or forrst. none: no content counts as a format. data: no
                    matching name is a lock; such a rule sets nothing else
  --stale-after D   semaphore: time after the timestamp, instead of an hour;
                    other content: time after the last write or touch, instead
                    of never. The other formats have their own time
  --on-stale        keep: a stale lock stays until the next program removes it;
                    remove: lockfs removes it
  --guard           from where programs may remove or overwrite a live lock: its
                    host, or anyone
  --host-timeout D  beads, pid and --holder creator: stale once the host has been
                    silent for so long, instead of never. The process may still
                    be alive: this trades safety for progress
  --any-file        also remove data. Without it, a rule with --on-stale remove or
                    --holder creator applies to locks only: content in a format,
                    and exclusive names with two pieces of evidence (lockfs help
                    locks). So '*.lock' leaves yarn.lock alone`,
		Example: `  lockfs rule set 'jobs/*.lock' --stale-after 10m --on-stale remove
  lockfs rule set 'cache/*.lock' --holder creator  # filelock, proper-lockfile
  lockfs rule set 'state/**' --format data`,
		Args: cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set.Pattern, set.StaleAfter, set.HostTimeout = args[0], int64(staleAfter), int64(hostTimeout)
			if err := checkRule(&set); err != nil {
				return fmt.Errorf("rule %s: %w", cli.Word(set.GetPattern()), err)
			}
			for _, option := range uselessOptions(&set) {
				fmt.Fprintf(cmd.ErrOrStderr(), "lockfs: %s has no effect on %s locks\n", option, set.GetFormat())
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				removed, err := previewRule(ctx, admin, &set, cmd.ErrOrStderr())
				if err != nil {
					return fmt.Errorf("set rule %s: %w", cli.Word(set.GetPattern()), err)
				}
				if removed > 0 && !yes {
					return fmt.Errorf("rule %s is not set, because it would remove %d of these names; to remove them, add --yes",
						cli.Word(set.GetPattern()), removed)
				}
				err = change(ctx, admin, &storepb.Op{Op: &storepb.Op_SetRule{SetRule: &storepb.SetRule{Rule: &set}}})
				if err != nil {
					return fmt.Errorf("set rule %s: %w", cli.Word(set.GetPattern()), err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), describeRule(&set))
				}
				return printRules(cmd.OutOrStdout(), []*storepb.Rule{&set})
			})
		},
	}
	cmd.Flags().StringVar(&set.Holder, "holder", "", "creator: held by the creator of the name")
	cmd.Flags().StringVar(&set.Format, "format", "", "the only valid format")
	cmd.Flags().DurationVar(&staleAfter, "stale-after", 0, "age at which a lock is stale")
	cmd.Flags().StringVar(&set.OnStale, "on-stale", "", "keep or remove")
	cmd.Flags().StringVar(&set.Guard, "guard", "", "host or anyone")
	cmd.Flags().DurationVar(&hostTimeout, "host-timeout", 0, "time without its host until a lock is stale")
	cmd.Flags().BoolVar(&set.AnyFile, "any-file", false, "also remove data files")
	cmd.Flags().BoolVar(&yes, "yes", false, "set the rule even if it removes existing names")
	flags.Add(cmd.Flags())
	return cmd
}

func ruleDeleteCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:     "delete PATTERN",
		Short:   "Delete the rule of a pattern",
		Long:    "Delete the rule of a pattern, which is to be given as `lockfs rule list` shows it.",
		Example: "  lockfs rule delete 'jobs/*.lock'",
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				rules, err := listRules(ctx, admin)
				if err != nil {
					return err
				}
				if err := hasRule(rules, args[0]); err != nil {
					return err
				}
				op := &storepb.Op_DeleteRule{DeleteRule: &storepb.DeleteRule{Pattern: args[0]}}
				if err := change(ctx, admin, &storepb.Op{Op: op}); err != nil {
					return fmt.Errorf("delete rule %s: %w", cli.Word(args[0]), err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"deleted": args[0]})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", cli.Word(args[0]))
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func listRules(ctx context.Context, admin *cluster.Admin) ([]*storepb.Rule, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListRules{ListRules: &storepb.ListRules{}}})
	return result.GetRules(), err
}

// checkRule validates a rule before it is sent.
func checkRule(r *storepb.Rule) error {
	if !utf8.ValidString(r.GetPattern()) {
		return fmt.Errorf("the pattern is not valid UTF-8: write ? for each invalid byte")
	}
	if message := namespace.CheckRule(r); message != "" {
		return fmt.Errorf("%s", message)
	}
	if describeRule(r) == (rule{Pattern: r.GetPattern()}) {
		return fmt.Errorf("the rule has no setting: give --holder, --format, --stale-after, --on-stale, --guard or " +
			"--host-timeout, or delete the rule with `lockfs rule delete`")
	}
	return nil
}

// uselessOptions returns the options without effect on the rule's format.
func uselessOptions(r *storepb.Rule) (options []string) {
	switch format := r.GetFormat(); format {
	case "":
		return nil
	case "semaphore", "none":
	default:
		if r.GetStaleAfter() != 0 {
			options = append(options, "--stale-after")
		}
	}
	switch r.GetFormat() {
	case "beads", "pid":
	default:
		if r.GetHostTimeout() != 0 && r.GetHolder() == "" {
			options = append(options, "--host-timeout")
		}
	}
	return options
}

func hasRule(rules []*storepb.Rule, pattern string) error {
	if len(rules) == 0 {
		return fmt.Errorf("rule %s does not exist, and there are no others; create one with `lockfs rule set`", cli.Word(pattern))
	}
	var patterns []string
	for _, r := range rules {
		if r.GetPattern() == pattern {
			return nil
		}
		patterns = append(patterns, cli.Word(r.GetPattern()))
	}
	return fmt.Errorf("rule %s does not exist; the rules are: %s", cli.Word(pattern), strings.Join(patterns, "  "))
}

func describeRule(r *storepb.Rule) rule {
	return rule{
		Pattern: r.GetPattern(), Format: r.GetFormat(), OnStale: r.GetOnStale(), Guard: r.GetGuard(), Holder: r.GetHolder(), AnyFile: r.GetAnyFile(),
		StaleAfter:  time.Duration(r.GetStaleAfter()).Seconds(),
		HostTimeout: time.Duration(r.GetHostTimeout()).Seconds(),
	}
}

func printRules(w io.Writer, rules []*storepb.Rule) error {
	table := cli.NewTable(w)
	fmt.Fprintln(table, "PATTERN\tHOLDER\tFORMAT\tSTALE AFTER\tON STALE\tGUARD\tHOST TIMEOUT")
	for _, r := range rules {
		onStale := orDash(r.GetOnStale())
		if r.GetAnyFile() {
			onStale += ", any file"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Word(r.GetPattern()), orDash(r.GetHolder()), orDash(r.GetFormat()),
			durationOrDash(r.GetStaleAfter()), onStale, orDash(r.GetGuard()), durationOrDash(r.GetHostTimeout()))
	}
	return table.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func durationOrDash(nanoseconds int64) string {
	if nanoseconds == 0 {
		return "-"
	}
	return lockjson.Setting(time.Duration(nanoseconds))
}
