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
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// Command returns the command bench.
func Command() *cobra.Command {
	var plan Plan
	asJSON := false
	cmd := &cobra.Command{
		Use:   "bench DIR",
		Short: "Measure the speed of locks in a directory",
		Long: fmt.Sprintf(`Measure how fast locks are in a directory of a mount, or of any other file
system:

%s
PER SECOND is of all workers. In a handover, the holder keeps the lock for 20 ms
each time, which does not count.

The kernel lets one program at a time create or remove names in a directory. So
many workers are not faster than one.

lockfs works in a fresh directory in DIR, and removes it at the end, also after
Ctrl-C. If this hangs, press it again.`, measurementHelp()),
		Example: `  lockfs bench /locks
  lockfs bench /locks --only cycle,handover-flock --duration 5s
  lockfs bench /locks --only stat --workers 64 --json | jq '.results[0].per_second'`,
		Args: cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
			defer stop()
			// A second Ctrl-C ends a program that waits for a hanging file system.
			defer context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })()
			plan.Dir = args[0]
			plan.Progress = func(measurement string, number, of int) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d: %s\n", number, of, measurement)
			}
			report, err := Run(ctx, plan)
			if err != nil {
				return err
			}
			report.Version = cli.ProgramVersion()
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), report)
			}
			return printReport(cmd.OutOrStdout(), report)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&plan.Workers, "workers", 1, "number of concurrent workers, each on its own name; a handover always has two")
	flags.DurationVar(&plan.Duration, "duration", 2*time.Second, "measuring time of each figure")
	flags.StringSliceVar(&plan.Only, "only", nil, "measurements, separated by commas (default: all)")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func measurementHelp() string {
	var help strings.Builder
	for _, m := range all {
		fmt.Fprintf(&help, "  %-16s %s\n", m.name, m.about)
	}
	return help.String()
}

func printReport(w io.Writer, report *Report) error {
	workers := "1 worker"
	if report.Workers > 1 {
		workers = fmt.Sprintf("%d workers", report.Workers)
	}
	fmt.Fprintf(w, "lockfs %s in %s, %d cores; %s, %gs for each figure\n\n", report.Version, cli.Text(report.Directory), report.Cores, workers, report.Seconds)
	table := cli.NewTable(w)
	fmt.Fprintln(table, "MEASUREMENT\tMEDIAN\tP99\tPER SECOND")
	for _, r := range report.Results {
		rate := ""
		if r.PerSecond > 0 {
			rate = strconv.FormatFloat(r.PerSecond, 'f', 0, 64)
		}
		if r.Error != "" {
			fmt.Fprintf(table, "%s\t\t\t\t%s\n", r.Measurement, cli.Text(r.Error))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Measurement, showMicros(r.Median), showMicros(r.P99), rate)
	}
	return table.Flush()
}

// showMicros formats a time with three digits.
func showMicros(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3g s", us/1e6)
	case us >= 999.5:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g us", us)
}
