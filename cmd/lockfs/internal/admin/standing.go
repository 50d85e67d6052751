package admin

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/lockjson"
)

// standingTime is how long all together may take to answer who only wants to know where he stands.
const standingTime = 5 * time.Second

// Standing is the program without a command: it says in some lines where one stands, and what to do next.
func Standing(cmd *cobra.Command, _ []string) error {
	return standing(cmd.Context(), cmd.OutOrStdout())
}

func standing(ctx context.Context, w io.Writer) error {
	mounts, err := mountpoint.All()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "lockfs %s\n", cli.ProgramVersion())
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", what, fmt.Sprintf(format, args...))
	}
	for _, dir := range mounts[:min(len(mounts), 2)] {
		line("mounted", "%s%s", cli.Text(dir), deadOrAlive(dir))
	}
	if len(mounts) > 2 {
		line("mounted", "and at %d more places", len(mounts)-2)
	}
	if len(mounts) == 0 {
		line("mounted", "nowhere here: `lockfs up` does that for a host, `lockfs dev` for a try")
	}
	flags := &cli.ClusterFlags{Timeout: standingTime}
	var status *clusterStatus
	var locks []lockjson.Lock
	var unseen error // why locks are not known
	err = withAdmin(ctx, flags, func(ctx context.Context, admin *cluster.Admin) error {
		nodes, err := admin.Status(ctx, false)
		if err != nil {
			return err
		}
		status = summarize(nodes)
		locks, unseen = findLocks(ctx, admin, "")
		return nil
	})
	switch {
	case err != nil:
		line("cluster", "%s", cli.Text(err.Error()))
	default:
		status.stand(line)
		if unseen != nil {
			line("locks", "%s", cli.Text(unseen.Error()))
			break
		}
		line("locks", "%s", describeLocks(locks, hostNames()))
	}
	line("next", "lockfs status, lockfs locks, lockfs events, lockfs why PATH")
	line("help", "lockfs --help, lockfs help locks, lockfs doctor")
	return nil
}

func deadOrAlive(dir string) string {
	if dead, err := mountpoint.State(dir); err != nil || dead {
		return ", where nobody serves it any more: `lockfs up` mounts it again"
	}
	return ""
}

// stand says who leads, and who of the servers answers.
func (s *clusterStatus) stand(line func(what, format string, args ...any)) {
	var silent []string
	for _, node := range s.Nodes {
		if node.Error != "" {
			silent = append(silent, node.Name)
		}
	}
	leader := "no leader is known: `lockfs doctor` looks for the reason"
	if s.Leader != "" {
		leader = "led by " + s.Leader
	}
	line("cluster", "%s; %d of %d servers answer", leader, len(s.Nodes)-len(silent), len(s.Nodes))
	if len(silent) > 0 {
		line("trouble", "no answer of %s: `lockfs status` tells more", cli.Text(strings.Join(silent, ", ")))
	}
}

// hostNames are those that this host may be known by to the cluster.
func hostNames() []string {
	var names []string
	if name, err := cli.HostName(); err == nil {
		names = append(names, name)
	}
	if name := os.Getenv("LOCKFS_NAME"); name != "" {
		names = append(names, name)
	}
	return names
}

// describeLocks counts those of this host, and those in trouble.
func describeLocks(locks []lockjson.Lock, here []string) string {
	held, own, stale := 0, 0, 0
	for _, lock := range locks {
		if lock.State != "held" {
			stale++
			continue
		}
		held++
		if slices.Contains(here, lock.Host) {
			own++
		}
	}
	text := fmt.Sprintf("%d held, %d of them by this host", held, own)
	if stale > 0 {
		text += fmt.Sprintf("; %d stale or of hosts that are silent", stale)
	}
	return text
}
