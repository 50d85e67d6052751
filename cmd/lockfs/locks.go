package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/raftstore/storepb"
)

// lock is what `lockfs locks --json` prints of each.
type lock struct {
	Path     string         `json:"path"`  // from the root of the mount; empty: the file was removed
	State    string         `json:"state"` // held, stale, unreachable
	Reason   string         `json:"reason,omitempty"`
	Format   string         `json:"format"`
	Holder   string         `json:"holder,omitempty"`
	Host     string         `json:"host,omitempty"`
	PID      uint32         `json:"pid,omitempty"`
	Token    uint64         `json:"token,omitempty"`
	Age      float64        `json:"age_seconds"` // since its holder got the name
	Advisory []advisoryLock `json:"advisory_locks,omitempty"`
}

// advisoryLock is a lock of flock(2) or fcntl(2), or a request for one; those wait in this order.
type advisoryLock struct {
	Kind    string  `json:"kind"` // flock, fcntl
	Type    string  `json:"type"` // shared, exclusive
	State   string  `json:"state"`
	Host    string  `json:"host"`
	PID     uint32  `json:"pid"`
	Start   uint64  `json:"start"`
	End     uint64  `json:"end"` // last byte
	Age     float64 `json:"age_seconds"`
	Session string  `json:"session"` // hexadecimal
}

// The states of an advisory lock. An interrupted one is of somebody who waited, and keeps the place for a moment. A
// delayed one is of a mount that was given up on.
const (
	advisoryHeld        = "held"
	advisoryWaiting     = "waiting"
	advisoryInterrupted = "interrupted"
	advisoryDelayed     = "delayed"
)

func locksCommand() *cobra.Command {
	var flags clusterFlags
	cmd := &cobra.Command{
		Use:   "locks [PATH]",
		Short: "List lock files, and who holds or waits for a flock or fcntl lock",
		Long: `List the locks: every file, symbolic link and empty directory, with its holder as far as its content tells, and
the flock and fcntl locks that are held on it and waited for, in the order in which they are served. With PATH,
only that and what is below it: a path on a mount, or one from the root of the cluster's locks.`,
		Example: `  lockfs locks
  lockfs locks /locks/deploy.lock
  lockfs locks --json | jq -r '.[] | select(.state == "stale") | .path'`,
		Args: exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			below := ""
			if len(args) == 1 {
				below = fromRoot(args[0])
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				locks, err := findLocks(ctx, admin, below)
				if err != nil {
					return err
				}
				if flags.json {
					return printJSON(cmd.OutOrStdout(), locks)
				}
				return printLocks(cmd.OutOrStdout(), locks)
			})
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

// fromRoot makes of a path on a mount one from its root. Any other is taken for one already.
func fromRoot(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		if dir, err = filepath.Abs(dir); err == nil {
			if root, err := mountRoot(dir); err == nil {
				if below, err := filepath.Rel(root, filepath.Join(dir, filepath.Base(path))); err == nil {
					path = below
				}
			}
		}
	}
	return strings.Trim(filepath.Clean("/"+path), "/")
}

func findLocks(ctx context.Context, admin *cluster.Admin, below string) ([]lock, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAdvisoryLocks{
		ListAdvisoryLocks: &storepb.ListAdvisoryLocks{},
	}})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	advisory := make(map[uint64][]advisoryLock)
	for _, a := range result.GetAdvisoryLocks() {
		advisory[a.GetIno()] = append(advisory[a.GetIno()], describeAdvisory(a, now))
	}
	locks := []lock{}
	for next := (&storepb.ListLocks{}); ; {
		result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: next}})
		if err != nil {
			return nil, err
		}
		page := result.GetLocks()
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			path := string(l.GetPath())
			if below == "" || path == below || strings.HasPrefix(path, below+"/") {
				locks = append(locks, describeLock(l, advisory[l.GetAttr().GetIno()], now))
			}
			delete(advisory, l.GetAttr().GetIno())
		}
		last := page[len(page)-1]
		next = &storepb.ListLocks{AfterParent: last.GetParent(), AfterName: last.GetName()}
	}
	if below == "" {
		for _, of := range advisory { // of files that were removed and are still open
			locks = append(locks, lock{State: "removed", Format: "none", Advisory: of})
		}
	}
	return locks, nil
}

func describeLock(l *storepb.Lock, advisory []advisoryLock, now time.Time) lock {
	f := l.GetFacts()
	return lock{
		Path: string(l.GetPath()), State: l.GetState(), Reason: l.GetReason(), Format: f.GetFormat(), Holder: f.GetHolder(),
		Host: f.GetHost(), PID: f.GetPid(), Token: l.GetToken(), Age: age(l.GetAcquired(), now), Advisory: advisory,
	}
}

func describeAdvisory(a *storepb.AdvisoryLock, now time.Time) advisoryLock {
	described := advisoryLock{
		Kind: "flock", Type: "shared", State: advisoryHeld, Host: a.GetHost(), PID: a.GetPid(), Start: a.GetStart(), End: a.GetEnd(),
		Age: age(a.GetSince(), now), Session: fmt.Sprintf("%016x", a.GetSession()),
	}
	if a.GetKind() == storepb.LockKind_RECORD {
		described.Kind = "fcntl"
	}
	if a.GetType() == storepb.LockType_EXCLUSIVE {
		described.Type = "exclusive"
	}
	switch {
	case a.GetInterrupted() != 0:
		described.State = advisoryInterrupted
	case a.GetPosition() != 0:
		described.State = advisoryWaiting
	case a.GetUntil() != 0:
		described.State = advisoryDelayed
	}
	return described
}

// age is in seconds, on this host's clock.
func age(since int64, now time.Time) float64 {
	return max(0, now.Sub(time.Unix(0, since)).Seconds())
}

func printLocks(w io.Writer, locks []lock) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PATH\tSTATE\tFORMAT\tHOLDER\tTOKEN\tAGE")
	for _, l := range locks {
		path := word(l.Path)
		if l.Path == "" {
			path = "(removed)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%.0fs\n", path, l.State, l.Format, lockHolder(l), l.Token, l.Age)
		for _, a := range l.Advisory {
			bytes := ""
			if a.Kind == "fcntl" {
				bytes = fmt.Sprintf(" of bytes %d to %d", a.Start, a.End)
			}
			fmt.Fprintf(table, "  %s %s%s\t%s\t\tpid %d on %s\t\t%.0fs\n", a.Type, a.Kind, bytes, a.State, a.PID, word(a.Host), a.Age)
		}
	}
	return table.Flush()
}

func lockHolder(l lock) string {
	var parts []string
	if l.Holder != "" {
		parts = append(parts, word(l.Holder))
	}
	if l.Host != "" {
		parts = append(parts, "on "+word(l.Host))
	}
	return strings.Join(parts, " ")
}
