// Command contest measures the speed of locks in several directories, on lockfs or any other file system, and
// prints the report as JSON.
//
//	go run -C test/bench ./contest /locks /mnt/nfs /var/tmp
//
// It measures the system calls of programs with lock files and knows nothing of lockfs. It measures several
// directories in turn, each for a part of a second, so that other load on the machine affects all of them and
// the ratios stay meaningful. Handovers are between two consecutive directories that show the same files,
// such as two mounts of one cluster; otherwise within one directory.
//
// All load is in one fresh directory below each measured directory: at most [MaxWorkers] files, with a
// directory for each if needed, and a listing of a hundred. [Run] always removes it. It only reports the
// files of a killed run, because these may belong to a run on another host.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := measureTo(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "contest:", err)
		os.Exit(1)
	}
}

// measureTo measures by the arguments of the command.
func measureTo(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("contest", flag.ContinueOnError)
	plan := Plan{
		Progress: func(Step) {},
		Warn:     func(text string) { fmt.Fprintln(os.Stderr, "contest:", text) },
	}
	flags.IntVar(&plan.Workers, "workers", 1, "number of concurrent workers, each on its own name; a handover always has two")
	flags.DurationVar(&plan.Duration, "duration", 2*time.Second, "measuring time of each figure")
	flags.BoolVar(&plan.Together, "together", false, "spread the workers over all directories at once")
	flags.BoolVar(&plan.OwnDirs, "own-dirs", false, "give each worker a directory of its own")
	only := flags.String("only", "", "measurements, separated by commas (default: all): "+strings.Join(names(), ", "))
	if err := flags.Parse(args); err != nil {
		return err
	}
	plan.Dirs = flags.Args()
	if *only != "" {
		plan.Only = strings.Split(*only, ",")
	}
	report, err := Run(ctx, plan)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}
