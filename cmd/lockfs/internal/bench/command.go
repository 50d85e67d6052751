package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lockfs/test/figures"
	"lockfs/cmd/lockfs/internal/cli"
)

// Command is lockfs bench.
func Command() *cobra.Command {
	var plan Plan
	asJSON := false
	cmd := &cobra.Command{
		Use:   "bench DIR [DIR...]",
		Short: "Measure the speed of locks in a directory",
		Long: fmt.Sprintf(`Measure how fast locks are in directories, on lockfs or any other file system:

%s
Several directories are measured in turn, a quarter of a second each, so that noise hits all alike. RATIO is a median
to the first directory's. PER SECOND is of all workers. Handovers are between two directories that are next to
each other in the command and show the same files, such as two mounts of one cluster, else within one; the
lock is held for 20 ms each time, which does not count.

The kernel lets one program at a time create or remove names in a directory. So
many workers in one directory are not faster than one; --own-dirs gives each a
directory of its own.

lockfs works in a fresh directory in each DIR, and removes it at the end, also
after Ctrl-C. If this hangs, press it again.`, measurementHelp()),
		Example: `  lockfs bench /locks
  lockfs bench /locks /mnt/nfs /var/tmp --duration 5s
  lockfs bench /locks-of-a /locks-of-b --only cycle,handover-flock
  lockfs bench /locks-of-a /locks-of-b --together --workers 64 --only cycle --json | jq '.results[0].per_second'`,
		Args: cli.Exactly(1, cli.AnyNumber),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
			defer stop()
			// A second Ctrl-C ends a program that waits for a file system which does not answer.
			defer context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })()
			plan.Dirs = args
			show := progress{w: cmd.ErrOrStderr(), terminal: cli.IsTerminal(cmd.ErrOrStderr())}
			plan.Progress = show.step
			plan.Warn = func(warning string) { fmt.Fprintln(cmd.ErrOrStderr(), "lockfs:", cli.Text(warning)) }
			report, err := Run(ctx, plan)
			show.end()
			if err != nil {
				return err
			}
			report.Version = cli.ProgramVersion()
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), report)
			}
			return printBench(cmd.OutOrStdout(), report)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&plan.Workers, "workers", 1, "how many work at the same time, each on a name of its own; handovers are between two")
	flags.DurationVar(&plan.Duration, "duration", 2*time.Second, "how long each figure is measured")
	flags.StringSliceVar(&plan.Only, "only", nil, "measure only these, by comma")
	flags.BoolVar(&plan.Together, "together", false, "spread the workers over all directories at once")
	flags.BoolVar(&plan.OwnDirs, "own-dirs", false, "give each worker a directory of its own")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func measurementHelp() string {
	var help strings.Builder
	for _, m := range All {
		fmt.Fprintf(&help, "  %-16s %s\n", m.Name, m.About)
	}
	return help.String()
}

// progress says on a terminal what is done right now, and elsewhere a line for each measurement.
type progress struct {
	w        io.Writer
	terminal bool
}

const eraseLine = "\r\033[K"

func (p progress) step(s Step) {
	switch {
	case p.terminal:
		fmt.Fprintf(p.w, "%s%d of %d: %s, round %d of %d", eraseLine, s.Number, s.Of, s.Measurement, s.Round, s.Rounds)
	case s.Round == 0:
		fmt.Fprintf(p.w, "%d of %d: %s\n", s.Number, s.Of, s.Measurement)
	}
}

func (p progress) end() {
	if p.terminal {
		fmt.Fprint(p.w, eraseLine)
	}
}

func printBench(w io.Writer, report *figures.Report) error {
	workers := "1 worker"
	if report.Workers > 1 {
		workers = fmt.Sprintf("%d workers", report.Workers)
	}
	if report.OwnDirs {
		workers += " in directories of their own"
	}
	fmt.Fprintf(w, "lockfs %s on %s, %d cores; %s, %gs for each figure\n\n", report.Version, report.Kernel, report.Cores,
		workers, report.Seconds)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range report.Directories {
		fmt.Fprintf(table, "%s\t%s\t%s\n", cli.Text(d.Path), d.Type, cli.Text(d.Source))
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "MEASUREMENT\tMEDIAN\tP99\tPER SECOND\tRATIO\tDIRECTORY")
	for _, r := range report.Results {
		where := cli.Text(strings.Join(r.Directories, " + "))
		if r.Error != "" {
			fmt.Fprintf(table, "%s\t\t\t\t\t%s: %s\n", r.Measurement, where, cli.Text(r.Error))
			continue
		}
		rate, ratio := "", ""
		if r.PerSecond > 0 {
			rate = strconv.FormatFloat(r.PerSecond, 'f', 0, 64)
		}
		if r.Ratio > 0 {
			ratio = strconv.FormatFloat(r.Ratio, 'g', 3, 64)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Measurement, showMicros(r.Median), showMicros(r.P99), rate, ratio, where)
	}
	return table.Flush()
}

// showMicros shows three digits of a time.
func showMicros(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3g s", us/1e6)
	case us >= 999.5:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g us", us)
}
