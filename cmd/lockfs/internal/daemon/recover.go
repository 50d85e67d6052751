package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// recovered is the output of `lockfs server recover --json`.
type recovered struct {
	survivingLog
	Appended   *time.Time     `json:"last_appended_at,omitempty"` // time of the last entry by its leader's clock
	Voters     []string       `json:"voters"`                     // IDs, with this one
	Compared   []survivingLog `json:"compared"`
	Newer      []string       `json:"newer"`      // names of voters with entries missing here
	Missing    uint64         `json:"missing"`    // minimum number of missing entries
	Uncertain  uint64         `json:"uncertain"`  // entries at the end without a copy on a compared voter; they count from now on
	Uncompared int            `json:"uncompared"` // number of further voters to compare before the missing entries are known; 0: known
	Alive      []string       `json:"alive"`      // names or IDs of other members with a reply
	GoesOn     uint64         `json:"goes_on"`    // next index; 0: nothing was done
}

// survivingLog is the end of a voter's log.
type survivingLog struct {
	Node  string `json:"node"`
	ID    string `json:"id"`
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	Voter bool   `json:"voter"`
	// Unread marks unreadable data after the end.
	Unread bool `json:"unread"`
}

func (l survivingLog) position() consensus.Position {
	return consensus.Position{Term: ids.Term(l.Term), Index: ids.Index(l.Index)}
}

func recoverCommand() *cobra.Command {
	var dir string
	var compare []string
	var force, dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "recover --data DIR [--compare FILE...]",
		Short: "Recover a cluster from one server after the loss of the quorum",
		Long: `Recover a cluster from one remaining server, after the quorum is lost for good.
The only other way is to bring a quorum back.

On each readable server, run ` + "`lockfs server inspect --data DIR --json > FILE`" + `
to record where its log ends. Then run this command on the server with the newest
log; --compare finds it, and shows how much can be missing. The command refuses if
another log is newer, or a member still answers. It also refuses if the clock of
this host is more than a day from the last entry of the log: the cluster
continues on that clock. --force overrides this; --dry-run only reports.

Then start the server as before. Other servers join it with new tokens (or
--join) and empty data directories. Never start an old server with its old
directory again: the new cluster refuses it, but several old ones could form a
cluster of their own. See ` + "`lockfs help backup`" + `.`,
		Example: `  lockfs server inspect --data /mnt/disk-of-b/lockfs --json > b.json
  lockfs server recover --data /var/lib/lockfs --compare b.json --dry-run
  lockfs server recover --data /var/lib/lockfs --compare b.json`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return errors.New("give the data directory of a server with --data")
			}
			logs, err := readInspected(compare)
			if err != nil {
				return err
			}
			r, err := consensus.OpenRecovery(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			report, err := recoverFrom(cmd.Context(), r, time.Now(), logs, force, dryRun)
			err = errors.Join(err, r.Close())
			if report == nil {
				return err
			}
			show := report.print
			if asJSON {
				show = func(w io.Writer) error { return cli.PrintJSON(w, report) }
			}
			return errors.Join(show(cmd.OutOrStdout()), err)
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data directory (required)")
	cmd.Flags().StringSliceVar(&compare, "compare", nil, "`FILE`s with the output of server inspect --json from other servers, separated by commas")
	cmd.Flags().BoolVar(&force, "force", false, "also if other members answer, a log is newer, the server is out of service, or the clock is far from the last entry")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "report possible losses, and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readInspected reads the ends of logs from files.
func readInspected(files []string) ([]survivingLog, error) {
	logs := []survivingLog{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var found inspected
		if json.Unmarshal(content, &found) != nil || found.ID == "" {
			return nil, fmt.Errorf("%s is not an output of `lockfs server inspect --data DIR --json`", file)
		}
		log := survivingLog{Node: found.Node, ID: found.ID, Index: found.Last, Term: found.LastTerm, Unread: found.Unread != ""}
		if s := found.Snapshot; s != nil && s.Index > log.Index {
			log.Index, log.Term = s.Index, s.Term
		}
		if slices.ContainsFunc(logs, func(other survivingLog) bool { return other.ID == log.ID }) {
			return nil, fmt.Errorf("%s is about %s, like another file: give one file for each server", file, cli.Text(log.Node))
		}
		logs = append(logs, log)
	}
	return logs, nil
}

// recoverFrom compares logs, and recovers the cluster unless there is an objection. The report may be nil.
func recoverFrom(ctx context.Context, r *consensus.Recovery, now time.Time, logs []survivingLog, force, dryRun bool) (*recovered, error) {
	node, voters := r.Node(), r.Voters()
	if len(voters) == 1 && string(voters[0].ID) == node.ID {
		return nil, fmt.Errorf("%s is the only voter of its cluster: start it, no recovery is needed", node.Name)
	}
	report := compareLogs(r, logs)
	security, err := cluster.LoadTLS(r.Path())
	if err != nil {
		return nil, err
	}
	report.Alive = membersAlive(ctx, r.State.Members(), voters, node.ID, security)
	if dryRun {
		return report, nil
	}
	var against []string
	if len(report.Newer) > 0 {
		against = append(against, fmt.Sprintf("the log of %s is newer: recover that server instead", strings.Join(report.Newer, " and ")))
	}
	if r.State.Distrusted(node.ID) != nil {
		against = append(against, fmt.Sprintf("%s is out of service because its state differed from the quorum's: recover another server, or restore a backup", node.Name))
	}
	if len(report.Alive) > 0 {
		against = append(against, fmt.Sprintf("%s still answers: stop the rest of the cluster, so that it never runs beside this one",
			strings.Join(report.Alive, " and ")))
	}
	if far := skewWarning(now, r.State.Time()); far != "" {
		against = append(against, far)
	}
	if len(against) > 0 && !force {
		return report, fmt.Errorf("nothing was done: %s; --force overrides this", strings.Join(against, "; "))
	}
	from, err := r.Do(now, force)
	report.GoesOn = uint64(from)
	return report, adviseForce(err)
}

func compareLogs(r *consensus.Recovery, logs []survivingLog) *recovered {
	node := r.Node()
	report := &recovered{
		survivingLog: survivingLog{Node: node.Name, ID: node.ID, Index: uint64(r.Last.Index), Term: uint64(r.Last.Term)},
		Compared:     logs, Newer: []string{}, Voters: []string{},
	}
	if at := r.LastAppended.UTC(); !at.IsZero() {
		report.Appended = &at
	}
	for _, voter := range r.Voters() {
		report.Voters = append(report.Voters, string(voter.ID))
	}
	report.Voter = slices.Contains(report.Voters, report.ID)
	var sound []string
	common := uint64(0) // last entry of this log with a copy on another voter
	for i := range logs {
		log := &logs[i]
		log.Voter = slices.Contains(report.Voters, log.ID)
		if log.ID == report.ID {
			continue
		}
		if log.position().Newer(r.Last) {
			report.Newer = append(report.Newer, cli.Text(log.Node))
			report.Missing = max(report.Missing, log.Index-min(log.Index, report.Index), 1)
		}
		if log.Term == report.Term {
			common = max(common, min(log.Index, report.Index))
		}
		if !log.Unread {
			sound = append(sound, log.ID)
		}
	}
	report.Uncompared = r.MissingVoters(sound)
	if common > 0 {
		report.Uncertain = report.Index - common
	}
	return report
}

// membersAlive returns the names of other reachable members: those in the state, and voters in raft's
// configuration only.
func membersAlive(ctx context.Context, members []*storepb.Member, voters []raft.Server, self string, security *rpc.Security) []string {
	for _, voter := range voters {
		if !slices.ContainsFunc(members, func(m *storepb.Member) bool { return m.GetId() == string(voter.ID) }) {
			members = append(members, &storepb.Member{Id: string(voter.ID), Name: string(voter.ID), Address: string(voter.Address)})
		}
	}
	alive := []string{}
	for _, member := range members {
		if member.GetId() != self && cluster.IsReachable(ctx, member, security) {
			alive = append(alive, cli.Text(member.GetName()))
		}
	}
	return alive
}

func (r *recovered) print(w io.Writer) error {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	since := "an unknown time"
	if r.Appended != nil {
		since = r.Appended.Format(time.RFC3339)
	}
	add("%s: the log ends with entry %d of term %d, of %s; it knows %d voters", cli.Text(r.Node), r.Index, r.Term, since, len(r.Voters))
	for _, log := range r.Compared {
		what := "older, or the same"
		if log.position().Newer(r.position()) {
			what = "NEWER"
		}
		if !log.Voter {
			what += "; it is not a voter, and proves nothing"
		}
		if log.Unread {
			what += "; data after its end is unreadable, so it proves nothing"
		}
		add("%s: the log ends with entry %d of term %d: %s", cli.Text(log.Node), log.Index, log.Term, what)
	}
	switch {
	case len(r.Newer) > 0:
		add("Missing here: at least %d entries of %s, which may have been acknowledged.", r.Missing, strings.Join(r.Newer, " or "))
	case r.Uncompared == 0:
		add("Missing here: no acknowledged entry. Each quorum had one of these voters, and none has a newer log.")
	default:
		add("Missing here: entries acknowledged by the other voters after %s without this one. Their number is unknown "+
			"without %d more voters (--compare).", since, r.Uncompared)
	}
	if r.Uncertain > 0 {
		add("The last %d entries are on no compared voter, so they may not have been acknowledged. They count.", r.Uncertain)
	}
	for _, name := range r.Alive {
		add("%s still answers.", name)
	}
	if r.GoesOn > 0 {
		add("Recovered: %s is a cluster of one server, at index %d. Start it as before; other servers join with empty data directories.", cli.Text(r.Node), r.GoesOn)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
