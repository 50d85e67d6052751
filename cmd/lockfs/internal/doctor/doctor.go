// Package doctor has the command to check a host for lockfs, and the state of lockfs on it. Each check is a
// function of a [host], its only access to the machine. The table has them in their order of output.
package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// check is one check. It returns no finding only if another check reports the cause.
type check struct {
	name  string
	about string // for the manual
	look  func(context.Context, *host) []Finding
}

var checks = []check{
	{"fuse", "/dev/fuse is there and may be opened", lookAtFuse},
	{"fusermount", "fusermount3, without which only root can mount", lookAtFusermount},
	{"allow-other", "user_allow_other in /etc/fuse.conf, for mounts of users", lookAtAllowOther},
	{"kernel", "the kernel's version", lookAtKernel},
	{"fuse-timeouts", "limits of the kernel for how long a request may wait", lookAtTimeouts},
	{"mounts", "mounts of lockfs that are dead or do not answer", lookAtMounts},
	{"mount-points", "whether programs can lock in the directory below a configured mount", lookAtMountPoints},
	{"daemons", "sockets of daemons, and whether they answer", lookAtDaemons},
	{"clock", "whether the clock is synchronised, and how far it is from cluster time", lookAtClock},
	{"servers", "which servers answer, their versions and their number", lookAtServers},
	{"alarms", "alarms of the cluster", lookAtAlarms},
	{"lock-files", "programs that remove files while others use their flock or fcntl locks", lookAtLockFiles},
	{"ports", "whether the ports of a server are free, or a lockfs's", lookAtPorts},
	{"disk", "how long a small write to the data directory takes until it is on disk", lookAtDisk},
	{"file-system", "the kind of file system of the data directory", lookAtFileSystem},
	{"space", "free space of it", lookAtSpace},
	{"memory", "memory beside --max-bytes", lookAtMemory},
	{"files", "how many files a process may have open", lookAtOpenFiles},
	{"certificates", "when certificates in an identity directory expire", lookAtCertificates},
}

// Command returns lockfs doctor.
func Command() *cobra.Command {
	var flags cli.ClusterFlags
	var data []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this host and suggest repairs",
		Long: `Check whether this host can run lockfs and whether its daemons are healthy. The
first line is a summary. Each further line is a finding, trouble first: failed,
warning, unknown or ok, with the next step. The command changes nothing; its disk
test writes to a file without a name. You do not need root, but root sees more.

The exit code is 0 if all is well, 1 after a warning, 2 if something failed.` + cli.More + listing(),
		Example: `  lockfs doctor
  lockfs doctor --data /var/lib/lockfs --json | jq -r '.findings[] | select(.state == "failed") | .finding'`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h := thisHost(cmd, data)
			report := examine(cmd.Context(), h)
			if err := report.write(cmd.OutOrStdout(), flags.JSON); err != nil {
				return err
			}
			if code := report.exitCode(); code != 0 {
				return cli.Exit(code, nil)
			}
			return nil
		},
	}
	flags.Add(cmd.Flags())
	cmd.Flags().StringSliceVar(&data, "data", nil, "data directories to check (default: those of this host's daemons, or /var/lib/lockfs)")
	return cmd
}

// listing returns the list of checks.
func listing() string {
	text := "It looks at\n"
	for _, c := range checks {
		text += fmt.Sprintf("\n  %-14s  %s", c.name, c.about)
	}
	return text
}

// report is the output of `lockfs doctor --json`.
type report struct {
	State    State     `json:"state"` // of the worst finding
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings"` // trouble first
}

// examine runs all checks.
func examine(ctx context.Context, h *host) *report {
	r := &report{State: OK, Findings: []Finding{}}
	for _, c := range checks {
		for _, finding := range c.look(ctx, h) {
			finding.Check = c.name
			r.Findings = append(r.Findings, finding)
			if finding.State.worse(r.State) {
				r.State = finding.State
			}
		}
	}
	slices.SortStableFunc(r.Findings, byState)
	r.Summary = summarize(r.Findings)
	return r
}

func (r *report) exitCode() int {
	switch r.State {
	case Failed:
		return 2
	case Warning:
		return 1
	}
	return 0
}

func (r *report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, r)
	}
	fmt.Fprintln(w, r.Summary)
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "%-7s  %-13s  %s\n", f.State, f.Check, f.Finding); err != nil {
			return err
		}
		if f.Advice != "" {
			fmt.Fprintf(w, "%-7s  %-13s  -> %s\n", "", "", f.Advice)
		}
	}
	return nil
}
