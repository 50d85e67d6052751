package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/health"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// clusterStatus is the output of `lockfs status --json`.
type clusterStatus struct {
	Health health.Health `json:"health"`
	Leader string        `json:"leader"` // name; empty without a quorum
	Term   uint64        `json:"term"`   // highest of all nodes
	Time   time.Time     `json:"cluster_time"`
	Usage  *usage        `json:"usage,omitempty"` // from the node with the highest applied index
	// Insecure reports whether a node accepts connections without certificates.
	Insecure bool `json:"insecure"`
	// ClusterVersion is the version of the cluster on the node with the highest applied index.
	ClusterVersion uint32 `json:"cluster_version,omitempty"`
	// Clusters are the servers by cluster ID: several if the servers do not belong to one cluster.
	Clusters map[string][]string `json:"clusters"`
	// SeveralClusters is the warning for that, unless one cluster was recovered or restored from another.
	SeveralClusters string       `json:"several_clusters,omitempty"`
	Nodes           []nodeStatus `json:"nodes"`
	// Sessions are the mounts; null without a leader.
	Sessions []sessionRow `json:"sessions"`
}

// usage is the use of the limits, and the limits.
type usage struct {
	Inodes    uint64 `json:"inodes"`
	MaxInodes uint64 `json:"max_inodes"`
	Bytes     uint64 `json:"bytes"`
	MaxBytes  uint64 `json:"max_bytes"`
}

type nodeStatus struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	ID      string `json:"id,omitempty"`
	Version string `json:"version,omitempty"`
	// OldestVersion and NewestVersion are the cluster versions that the node's program supports.
	OldestVersion uint32 `json:"oldest_version,omitempty"`
	NewestVersion uint32 `json:"newest_version,omitempty"`

	State        string `json:"state"` // leader, follower, candidate; non-voter, joining; unreachable
	Voter        bool   `json:"voter"`
	Term         uint64 `json:"term,omitempty"`
	CommitIndex  uint64 `json:"commit_index,omitempty"`
	AppliedIndex uint64 `json:"applied_index,omitempty"`
	StateIndex   uint64 `json:"state_index,omitempty"`
	StateHash    string `json:"state_hash,omitempty"`
	Inodes       uint64 `json:"inodes,omitempty"`
	Mount        string `json:"mount,omitempty"`
	Error        string `json:"error,omitempty"`
	// DeadSince is the leader's last contact with a dead member, within the leader's raft term.
	DeadSince *time.Time `json:"dead_since,omitempty"`
}

func statusCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show members, leader, term and indexes",
		Long: `Show each member with its raft term, commit index and applied index, and each
session. PROGRAM is the version of a program, VERSIONS the cluster versions that
it supports. CLOCK is the offset of a host's clock from cluster time. Two
servers with equal state_index have equal state_hash (--json, for root on a
server); otherwise one of them is broken. The command reports servers of other
clusters.

Without a quorum the first line says which voters do not answer, and why. The
exit code is then 1, within two seconds.`,
		Example: `  lockfs status
  lockfs status --json | jq -r .leader`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				healthy, nodes, err := healthWithHash(ctx, admin, flags.JSON)
				if err != nil {
					return err
				}
				status := summarize(healthy, nodes)
				clusters := admin.Clusters(ctx, nodes)
				status.Clusters = clusters.ByID()
				if _, err := clusters.Only(); err != nil {
					status.SeveralClusters = err.Error()
				}
				if status.Leader != "" {
					if sessions, err := admin.Sessions(ctx); err == nil {
						status.Sessions = describeSessions(sessions)
					}
				}
				if flags.JSON {
					err = cli.PrintJSON(cmd.OutOrStdout(), status)
				} else {
					err = status.print(cmd.OutOrStdout())
				}
				if err == nil && !healthy.Confirmed {
					return cli.Exit(1, nil)
				}
				return err
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

// healthWithHash leaves out the state hashes if the caller may not read them.
func healthWithHash(ctx context.Context, admin *cluster.Admin, wanted bool) (health.Health, []cluster.NodeStatus, error) {
	healthy, nodes, err := admin.Health(ctx, wanted)
	if wanted && err == nil && slices.ContainsFunc(nodes, func(n cluster.NodeStatus) bool { return isRefused(n.Err) }) {
		return admin.Health(ctx, false)
	}
	return healthy, nodes, err
}

// isRefused reports whether the caller lacks permission.
func isRefused(err error) bool { return refusal(err) == storepb.Code_NOT_PERMITTED }

// refusal returns the code of a refusal by the cluster; OK for other errors.
func refusal(err error) storepb.Code {
	if refused := new(rpc.RefusedError); errors.As(err, &refused) {
		return refused.Code()
	}
	return storepb.Code_OK
}

// summarize names the leader of the highest term, if a quorum confirms a leader.
func summarize(healthy health.Health, nodes []cluster.NodeStatus) *clusterStatus {
	summary := &clusterStatus{Health: healthy, Nodes: []nodeStatus{}}
	leaderID, names, voters := "", make(map[string]string), make(map[string]bool)
	newest := uint64(0)
	for _, node := range nodes {
		s := node.Status
		if node.Err != nil {
			continue
		}
		names[s.GetId()] = s.GetName()
		summary.Insecure = summary.Insecure || s.GetInsecure()
		for _, member := range s.GetMembers() {
			names[member.GetId()] = member.GetName()
		}
		if s.GetTerm() > summary.Term {
			summary.Term, leaderID = s.GetTerm(), ""
		}
		if s.GetTerm() == summary.Term && s.GetLeaderId() != "" {
			leaderID = s.GetLeaderId()
			for _, id := range s.GetVoters() {
				voters[id] = true
			}
		}
		if u := s.GetUsage(); u != nil && (summary.Usage == nil || s.GetStateIndex() > newest) {
			newest = s.GetStateIndex()
			summary.Usage = &usage{u.GetInodes(), u.GetMaxInodes(), u.GetBytes(), u.GetMaxBytes()}
		}
		summary.ClusterVersion = max(summary.ClusterVersion, s.GetClusterVersion()) // it only grows
	}
	if healthy.Confirmed {
		summary.Leader = names[leaderID]
	}
	summary.Time = latestTime(nodes)
	silences := silencesOf(nodes)
	for _, node := range nodes {
		described := describe(node, voters)
		if silent := silences[node.ID]; silent >= deadAfter {
			since := summary.Time.Add(-silent).Truncate(time.Second)
			described.DeadSince = &since
		}
		summary.Nodes = append(summary.Nodes, described)
	}
	return summary
}

// latestTime returns the latest cluster time of all members.
func latestTime(nodes []cluster.NodeStatus) (latest time.Time) {
	for _, node := range nodes {
		if at := time.Unix(0, node.Status.GetClusterTime()).UTC(); node.Err == nil && at.After(latest) {
			latest = at
		}
	}
	return latest
}

// silencesOf returns the time since the leader's last contact with each member, by ID.
func silencesOf(nodes []cluster.NodeStatus) map[string]time.Duration {
	silences := make(map[string]time.Duration)
	for _, node := range nodes {
		for _, silence := range node.Status.GetSilences() {
			silences[silence.GetId()] = time.Duration(silence.GetDuration())
		}
	}
	return silences
}

func (s *clusterStatus) warnOfVoters() string {
	voters := 0
	for _, node := range s.Nodes {
		if node.Voter {
			voters++
		}
	}
	return WarnOfVoters(voters)
}

func describe(node cluster.NodeStatus, voters map[string]bool) nodeStatus {
	if node.Err != nil {
		described := nodeStatus{Name: node.Name, Address: node.Address, State: "unreachable", Voter: node.Voter, Error: node.Err.Error()}
		if node.Joining {
			described.State = joining
		}
		return described
	}
	s := node.Status
	described := nodeStatus{
		Name: s.GetName(), Address: node.Address, ID: s.GetId(), Version: s.GetVersion(), State: s.GetState(),
		Voter: voters[s.GetId()], Term: s.GetTerm(), CommitIndex: s.GetCommitIndex(), AppliedIndex: s.GetAppliedIndex(),
		OldestVersion: s.GetOldestVersion(), NewestVersion: s.GetNewestVersion(),
		StateIndex: s.GetStateIndex(), StateHash: s.GetStateHash(), Inodes: s.GetInodes(), Mount: s.GetMount(),
	}
	if !node.Voter && !described.Voter {
		described.State = stateOf(false, node.Joining)
	}
	return described
}

func (s *clusterStatus) print(w io.Writer) error {
	switch {
	case !s.Health.Confirmed:
		fmt.Fprintf(w, "%s\nterm %d, last known cluster time %s\n", cli.Text(s.Health.String()), s.Term, s.Time.Format(time.RFC3339))
	default:
		fmt.Fprintf(w, "leader %s, term %d, cluster time %s\n", cmp.Or(s.Leader, "(not known)"), s.Term, s.Time.Format(time.RFC3339))
		if len(s.Health.Silent) > 0 {
			fmt.Fprintln(w, cli.Text(s.Health.String()))
		}
	}
	if u := s.Usage; u != nil {
		fmt.Fprintf(w, "used %s of %s, %d of %d inodes\n", cli.SizeText(u.Bytes), cli.SizeText(u.MaxBytes), u.Inodes, u.MaxInodes)
	}
	if s.ClusterVersion != 0 {
		fmt.Fprintf(w, "cluster version %d\n", s.ClusterVersion)
	}
	if s.SeveralClusters != "" {
		fmt.Fprintln(w, "WRONG:", s.SeveralClusters)
	}
	if s.Insecure {
		fmt.Fprintln(w, "insecure: every program that reaches a server's port has all rights")
	}
	if warning := s.warnOfVoters(); warning != "" {
		fmt.Fprintln(w, warning)
	}
	fmt.Fprintln(w)
	table := cli.NewTable(w)
	fmt.Fprintln(table, "NAME\tADDRESS\tSTATE\tPROGRAM\tVERSIONS\tTERM\tCOMMIT\tAPPLIED\tINODES\tMOUNT")
	for _, node := range s.Nodes {
		if node.Error != "" {
			state := node.State
			if node.DeadSince != nil {
				state = "dead since " + node.DeadSince.Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t\t\t\t\t\t\t%s\n", node.Name, node.Address, state, node.Error)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", node.Name, node.Address, node.State, cli.Word(node.Version),
			version.Range{Oldest: node.OldestVersion, Newest: node.NewestVersion},
			node.Term, node.CommitIndex, node.AppliedIndex, node.Inodes, node.Mount)
	}
	if err := table.Flush(); err != nil || s.Sessions == nil {
		return err
	}
	fmt.Fprintln(w)
	return printSessions(w, s.Sessions)
}
