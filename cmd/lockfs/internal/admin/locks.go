package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func locksCommand() *cobra.Command {
	var flags cli.ClusterFlags
	watch := false
	cmd := &cobra.Command{
		Use:   "locks [PATH]",
		Short: "List lock files, and who holds or waits for a flock or fcntl lock",
		Long: `List the locks: every file, symbolic link and empty directory, with its holder as far as its content tells, and
the flock and fcntl locks that are held on it and waited for, in the order in which they are served. With PATH,
only that and what is below it: a path on a mount, or one from the root of the cluster's locks. With --watch the list is printed
again, until Ctrl-C, whenever it is another one; with --json too, one array a line.

` + whoSees,
		Example: `  lockfs locks
  lockfs locks /locks/deploy.lock
  lockfs locks --json | jq -r '.[] | select(.state == "stale") | .path'`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, below := "", ""
			if len(args) == 1 {
				root, below = fromRoot(args[0])
			}
			if watch {
				return watchLocks(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), flags.JSON, func() ([]lockjson.Lock, error) {
					return locksFor(cmd, &flags, root, below)
				})
			}
			locks, err := locksFor(cmd, &flags, root, below)
			if err != nil {
				return err
			}
			if flags.JSON {
				return cli.PrintJSON(cmd.OutOrStdout(), locks)
			}
			return printLocks(cmd.OutOrStdout(), locks)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "go on, and print them again when something has changed")
	flags.Add(cmd.Flags())
	return cmd
}

// fromRoot makes of a path on a mount where that is, and a path from its root. Any other is taken for one already: then root is empty.
func fromRoot(path string) (root, below string) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		dir, name = path, "."
	}
	if dir, err := filepath.EvalSymlinks(dir); err == nil {
		if dir, err = filepath.Abs(dir); err == nil {
			if root, err = mountRoot(dir); err != nil {
				root = ""
			} else if onMount, err := filepath.Rel(root, filepath.Join(dir, name)); err == nil {
				path = onMount
			}
		}
	}
	return root, strings.Trim(filepath.Clean("/"+path), "/")
}

// locksFor lists the locks below a path. root is the mount that this was on, if it was.
func locksFor(cmd *cobra.Command, flags *cli.ClusterFlags, root, below string) (locks []lockjson.Lock, err error) {
	if root := lookThrough(cmd, root); root != "" {
		locks, err = locksOn(root, below)
		if err == nil && len(locks) == 0 {
			_, err = os.Lstat(filepath.Join(root, below))
		}
		return locks, err
	}
	err = withAdmin(cmd.Context(), flags, func(ctx context.Context, admin *cluster.Admin) error {
		locks, err = findLocks(ctx, admin, below)
		if err == nil && len(locks) == 0 {
			err = mustExist(ctx, admin, below)
		}
		return err
	})
	return locks, err
}

// mustExist is an error for a path from the root that nothing has.
func mustExist(ctx context.Context, admin *cluster.Admin, path string) error {
	at := uint64(namespace.RootIno)
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			continue
		}
		found, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_Lookup{
			Lookup: &storepb.Lookup{Parent: at, Name: []byte(name)},
		}})
		switch {
		case ctx.Err() != nil:
			return err
		case isRefused(err):
			return nil // it is not for this user to know
		case err != nil:
			return fmt.Errorf("there is no %s; give a path on a mount, or one from the root of the cluster's locks, as `lockfs locks` lists them",
				cli.Word(path))
		}
		at = found.GetAttr().GetIno()
	}
	return nil
}

// locksOn lists the locks below a path as a mount tells of them.
func locksOn(root, below string) ([]lockjson.Lock, error) {
	file, err := os.Open(filepath.Join(root, controlDir, "locks.jsonl"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	locks := []lockjson.Lock{}
	for decoder := json.NewDecoder(bufio.NewReader(file)); ; {
		var lock lockjson.Lock
		switch err := decoder.Decode(&lock); {
		case errors.Is(err, io.EOF):
			return locks, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		if isBelow(lock.Path, below) {
			locks = append(locks, lock)
		}
	}
}

// findLocks asks the cluster for the locks below a path, all if that is empty, for whom this process runs as.
func findLocks(ctx context.Context, admin *cluster.Admin, below string) ([]lockjson.Lock, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAdvisoryLocks{
		ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Viewer: cli.Self()},
	}})
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixNano() // this host's clock, which is good enough for an age
	unnamed := make(map[uint64][]lockjson.Advisory)
	for _, a := range result.GetAdvisoryLocks() {
		unnamed[a.GetIno()] = append(unnamed[a.GetIno()], lockjson.DescribeAdvisory(a, now))
	}
	locks := []lockjson.Lock{}
	for next := (&storepb.ListLocks{Viewer: cli.Self()}); ; {
		result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: next}})
		if err != nil {
			return nil, err
		}
		page := result.GetLocks()
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			if isBelow(string(l.GetPath()), below) {
				locks = append(locks, lockjson.DescribeLock(l, now))
			}
			delete(unnamed, l.GetAttr().GetIno())
		}
		last := page[len(page)-1]
		next.AfterParent, next.AfterName = last.GetParent(), last.GetName()
	}
	if below == "" {
		for _, of := range unnamed { // of files that were removed and are still open
			locks = append(locks, lockjson.Lock{State: "removed", Format: "none", Advisory: of})
		}
	}
	return locks, nil
}

// isBelow tells whether a path is another one or below it; all are below "".
func isBelow(path, top string) bool {
	return top == "" || path == top || strings.HasPrefix(path, top+"/")
}
