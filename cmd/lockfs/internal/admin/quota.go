package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// quota is an element of the output of `lockfs quota list --json`, for a path or a UID. Limits that are not
// set are left out.
type quota struct {
	Path      string  `json:"path,omitempty"` // from the root of the mount
	UID       *uint32 `json:"uid,omitempty"`
	Inodes    uint64  `json:"inodes"`
	MaxInodes uint64  `json:"max_inodes,omitempty"`
	Bytes     uint64  `json:"bytes"`
	MaxBytes  uint64  `json:"max_bytes,omitempty"`
}

// budgetUse is the use of a default budget by a user or a host.
type budgetUse struct {
	Budget  string  `json:"budget"`
	Host    string  `json:"host,omitempty"`
	UID     *uint32 `json:"uid,omitempty"`
	Path    string  `json:"path,omitempty"` // the file, for budgets of one file
	Used    uint64  `json:"used"`
	Most    uint64  `json:"most"`
	Setting string  `json:"setting,omitempty"` // the flag that changes the budget
}

// listed is the output of `lockfs quota list --json`.
type listed struct {
	Quotas  []quota     `json:"quotas"`
	Budgets []budgetUse `json:"budgets"`
}

func quotaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "List, set or remove quotas of directories and users",
		Long: `A quota limits the inodes and bytes of a directory, at any depth, or of a user.
A call beyond the quota fails with EDQUOT ("Disk quota exceeded"); existing
files stay. In a directory with a quota, df shows the smaller of the quota and
the limits of the cluster.

` + quotaHelp,
	}
	return cli.Parent(cmd, quotaListCommand(), quotaSetCommand(), quotaRemoveCommand())
}

const quotaHelp = `PATH is a directory, counted from the root of the mount: /ci. Its quota binds
all users including root, and follows the directory when it is renamed. Nested
quotas all apply. Each name in the directory counts as an inode with its bytes:
a file with two names there counts twice. A directory that is renamed into it
must fit with all its content.

The quota of a user replaces the default share of each user (the servers' flags
--max-inodes-per-user and --max-bytes-per-user). Root has no quota. For how
lockfs counts bytes, see lockfs help limits.`

func quotaListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List quotas and budgets and their use",
		Long: `List the quotas that are set, and the budgets that each user and host has
without one: inodes, bytes, flock and fcntl locks, sessions. The list has the
largest users of each budget. On a host with a daemon, it also has the daemon's
budgets in use there: calls, waits, open files, connections. The metrics of each
daemon have them too (lockfs_budget_used). See lockfs help limits.`,
		Example: "  lockfs quota list --servers 10.0.0.1:7421",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListQuotas{ListQuotas: &storepb.ListQuotas{Budgets: true}}})
				if err != nil {
					return err
				}
				all := listed{Quotas: make([]quota, len(result.GetQuotas())), Budgets: make([]budgetUse, len(result.GetBudgets()))}
				for i, q := range result.GetQuotas() {
					all.Quotas[i] = describeQuota(q)
				}
				for i, b := range result.GetBudgets() {
					all.Budgets[i] = describeBudget(b)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), all)
				}
				return errors.Join(printQuotas(cmd.OutOrStdout(), all.Quotas), printBudgets(cmd.OutOrStdout(), all.Budgets))
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func quotaSetCommand() *cobra.Command {
	var (
		flags cli.ClusterFlags
		set   storepb.Quota
	)
	cmd := &cobra.Command{
		Use:   "set PATH|--uid UID",
		Short: "Set or replace the quota of a directory or user",
		Long:  "Set the quota of a directory or a user, in place of the whole quota that it has.\n\n" + quotaHelp,
		Example: `  lockfs quota set /ci --inodes 10000 --bytes 64M
  lockfs quota set --uid 1001 --bytes 8M`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := quotaSubject(cmd, args)
			if err != nil {
				return err
			}
			if set.GetMaxInodes() == 0 && set.GetMaxBytes() == 0 {
				return errors.New("the quota has no limit: give --inodes, --bytes or both")
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				op := &storepb.Op_SetQuota{SetQuota: &storepb.SetQuota{Path: []byte(path), Quota: &set}}
				if err := change(ctx, admin, &storepb.Op{Op: op}); err != nil {
					return explainQuota("set", path, set.GetUid(), err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"set": subjectText(path, set.GetUid())})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "set the quota of %s\n", subjectText(path, set.GetUid()))
				return nil
			})
		},
	}
	cmd.Flags().Uint32Var(&set.Uid, "uid", 0, "user of the quota, by number")
	cmd.Flags().Uint64Var(&set.MaxInodes, "inodes", 0, "limit of files, directories and links")
	cmd.Flags().Var(cli.Size(&set.MaxBytes), "bytes", "limit of bytes, with suffix K, M, G or T")
	flags.Add(cmd.Flags())
	return cmd
}

func quotaRemoveCommand() *cobra.Command {
	var (
		flags cli.ClusterFlags
		uid   uint32
	)
	cmd := &cobra.Command{
		Use:   "remove PATH|--uid UID",
		Short: "Remove the quota of a directory or user",
		Long: `Remove the quota of a directory, counted from the root of the mount, or of a
user. The user then has the default share.`,
		Example: "  lockfs quota remove /ci",
		Args:    cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := quotaSubject(cmd, args)
			if err != nil {
				return err
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				op := &storepb.Op_DeleteQuota{DeleteQuota: &storepb.DeleteQuota{Path: []byte(path), Uid: uid}}
				if err := change(ctx, admin, &storepb.Op{Op: op}); err != nil {
					return explainQuota("remove", path, uid, err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"removed": subjectText(path, uid)})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "removed the quota of %s\n", subjectText(path, uid))
				return nil
			})
		},
	}
	cmd.Flags().Uint32Var(&uid, "uid", 0, "user of the quota, by number")
	flags.Add(cmd.Flags())
	return cmd
}

// explainQuota adds the subject of a quota and the commands that list it to an error.
func explainQuota(what, path string, uid uint32, err error) error {
	if refusal(err) == storepb.Code_NOT_FOUND && !strings.Contains(err.Error(), "`") {
		err = fmt.Errorf("%w; `lockfs quota list` shows the quotas, and `lockfs locks` the paths", err)
	}
	return fmt.Errorf("%s the quota of %s: %w", what, subjectText(path, uid), err)
}

// quotaSubject returns the path argument, or "" with --uid.
func quotaSubject(cmd *cobra.Command, args []string) (path string, err error) {
	if (len(args) == 1) == cmd.Flags().Changed("uid") {
		return "", errors.New("give either the path of a directory or --uid")
	}
	if len(args) == 0 {
		return "", nil
	}
	if args[0] == "" {
		return "", errors.New("the path is empty: give / for the root")
	}
	return args[0], nil
}

func subjectText(path string, uid uint32) string {
	if path == "" {
		return fmt.Sprintf("user %d", uid)
	}
	return cli.Word(path)
}

func describeQuota(q *storepb.QuotaUsage) quota {
	described := quota{
		Inodes: q.GetInodes(), MaxInodes: q.GetQuota().GetMaxInodes(), Bytes: q.GetBytes(), MaxBytes: q.GetQuota().GetMaxBytes(),
	}
	if q.GetQuota().GetDir() != 0 {
		described.Path = "/" + string(q.GetPath())
	} else {
		uid := q.GetQuota().GetUid()
		described.UID = &uid
	}
	return described
}

func printQuotas(w io.Writer, quotas []quota) error {
	table := cli.NewTable(w)
	fmt.Fprintln(table, "OF\tINODES\tMOST\tUSED\tMOST")
	for _, q := range quotas {
		of, mostInodes, mostBytes := "", "-", "-"
		if q.UID != nil {
			of = subjectText("", *q.UID)
		} else {
			of = cli.Word(q.Path)
		}
		if q.MaxInodes != 0 {
			mostInodes = strconv.FormatUint(q.MaxInodes, 10)
		}
		if q.MaxBytes != 0 {
			mostBytes = cli.SizeText(q.MaxBytes)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", of, q.Inodes, mostInodes, cli.SizeText(q.Bytes), mostBytes)
	}
	return table.Flush()
}

func describeBudget(b *storepb.BudgetUse) budgetUse {
	described := budgetUse{Budget: b.GetBudget(), Host: b.GetHost(), UID: b.Uid, Used: b.GetUsed(), Most: b.GetMost(), Setting: b.GetSetting()}
	if len(b.GetPath()) > 0 {
		described.Path = "/" + string(b.GetPath())
	}
	return described
}

func printBudgets(w io.Writer, budgets []budgetUse) error {
	if len(budgets) == 0 {
		return nil
	}
	table := cli.NewTable(w)
	fmt.Fprintln(table, "\nBUDGET\tOF\tUSED\tMOST\tCHANGED BY")
	for _, b := range budgets {
		var of []string
		if b.UID != nil {
			of = append(of, subjectText("", *b.UID))
		}
		if b.Host != "" {
			of = append(of, "host "+cli.Word(b.Host))
		}
		if b.Path != "" {
			of = append(of, "file "+cli.Word(b.Path))
		}
		used, most := strconv.FormatUint(b.Used, 10), strconv.FormatUint(b.Most, 10)
		if b.Budget == "bytes" {
			used, most = cli.SizeText(b.Used), cli.SizeText(b.Most)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", b.Budget, strings.Join(of, ", "), used, most, cmp.Or(b.Setting, "-"))
	}
	return table.Flush()
}
