package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
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
	var filter lockFilter
	watch := false
	cmd := &cobra.Command{
		Use:   "locks [PATH]",
		Short: "List locks, holders and waiters",
		Long: `List the locks: files, symbolic links and directories that are locks ("lockfs
help locks"), with their holders. Below a file stand its flock and fcntl locks,
then the requests that wait, in the order in which they are served.

PATH is a path on a mount, or one from the root of the cluster's locks. With
PATH the list has that name and everything below it. If there is no lock, but
PATH was created exclusively, the list has PATH in the state "exclusive", with
the token of its creation.

"invalid" marks content that breaks a rule of its format.
With --watch the command prints the list again after each change, until Ctrl-C;
with --json, one array a line.

` + whoSees,
		Example: `  lockfs locks
  lockfs locks /locks/deploy.lock
  lockfs locks --state stale,unreachable --host build-7
  lockfs locks --json | jq -r '.[] | select(.age_seconds > 3600) | .path'`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := filter.check(); err != nil {
				return err
			}
			root, below := "", ""
			if len(args) == 1 {
				root, below = fromRoot(args[0])
			}
			if watch {
				awaitChange := func(context.Context) {} // the servers are asked again and again
				if mount := lookThrough(cmd, root); mount != "" {
					awaitChange = (&mountChanges{root: mount}).await
				}
				list := func() ([]lockjson.Lock, error) {
					locks, err := locksFor(cmd, &flags, root, below)
					return filter.of(locks), err
				}
				return watchLocks(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), flags.JSON, list, awaitChange)
			}
			locks, err := locksFor(cmd, &flags, root, below)
			if err != nil {
				return err
			}
			selected := filter.of(locks)
			switch {
			case flags.JSON:
				return cli.PrintJSON(cmd.OutOrStdout(), selected)
			case len(selected) == 0 && len(locks) > 0:
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "no lock matches; %d locks do not\n", len(locks))
				return err
			}
			return printLocks(cmd.OutOrStdout(), selected, time.Now())
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print the list again after each change")
	filter.add(cmd.Flags())
	flags.Add(cmd.Flags())
	return cmd
}

// fromRoot splits a path on a mount into the root of the mount and the path below. Other paths count from the
// root; then root is empty.
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

// locksFor lists the locks below a path, through the mount at root if that is not empty.
func locksFor(cmd *cobra.Command, flags *cli.ClusterFlags, root, below string) (locks []lockjson.Lock, err error) {
	if root := lookThrough(cmd, root); root != "" {
		locks, err = locksOn(root, below)
		if err == nil && len(locks) == 0 && below != "" {
			locks, err = exclusiveOn(root, below)
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

// mustExist returns an error if the path does not exist.
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
			return nil // this user may not see it
		case err != nil:
			return fmt.Errorf("%s does not exist; give a path on a mount, or one from the root of the cluster's locks, as in `lockfs locks`",
				cli.Word(path))
		}
		at = found.GetAttr().GetIno()
	}
	return nil
}

// locksOn lists the locks below a path on a mount.
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

// exclusiveOn lists the name itself if it was created exclusively without being a lock.
func exclusiveOn(root, path string) ([]lockjson.Lock, error) {
	if _, err := os.Lstat(filepath.Join(root, path)); err != nil {
		return nil, err
	}
	facts, err := os.ReadFile(filepath.Join(root, controlDir, "kv", path))
	if err != nil {
		return []lockjson.Lock{}, nil //nolint:nilerr // a directory with entries, removed meanwhile, or not readable for this user
	}
	lock := lockjson.Lock{Path: path, State: lockjson.StateExclusive, Format: "none"}
	for line := range strings.Lines(string(facts)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		number, _ := strconv.ParseUint(value, 10, 64) // 0 for malformed values
		switch key {
		case "host":
			lock.Host = value
		case "token":
			lock.Token = number
		case "timestamp":
			lock.Age = max(0, math.Floor(time.Since(time.Unix(int64(number), 0)).Seconds()))
		}
	}
	if lock.Token == 0 {
		return []lockjson.Lock{}, nil
	}
	return []lockjson.Lock{lock}, nil
}

// findLocks asks the cluster for the locks below a path (empty: all) in the name of this user. Without a lock
// it lists the name itself if it was created exclusively.
func findLocks(ctx context.Context, admin *cluster.Admin, below string) ([]lockjson.Lock, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAdvisoryLocks{
		ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Viewer: cli.Self()},
	}})
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixNano() // the local clock is good enough for an age
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
	if below != "" && len(locks) == 0 {
		only := &storepb.ListLocks{Viewer: cli.Self(), Only: []byte(below)}
		result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: only}})
		if err != nil {
			return nil, err
		}
		for _, l := range result.GetLocks() {
			locks = append(locks, lockjson.DescribeLock(l, now))
		}
	}
	if below == "" {
		for _, of := range unnamed { // of removed files that are still open
			locks = append(locks, lockjson.Lock{State: "removed", Format: "none", Advisory: of})
		}
	}
	return locks, nil
}

// isBelow reports whether path is top or below it. Every path is below "".
func isBelow(path, top string) bool {
	return top == "" || path == top || strings.HasPrefix(path, top+"/")
}
