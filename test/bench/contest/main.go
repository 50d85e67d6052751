// Command contest measures how fast locks are in several directories, on lockfs or any other file system, and prints the report as JSON.
//
//	go run -C test/bench ./contest /locks /mnt/nfs /var/tmp
//
// What is measured is system calls, as a program makes them that locks by files: nothing here knows lockfs. Several
// directories are measured in one run and in turn, a part of a second each, so that whatever else the machine does hits all
// of them alike and their ratios mean something on a machine that is not quiet. Handovers are between two directories that are next to
// each other in the command and show the same files, such as two mounts of one cluster, else within one.
//
// All load is in one fresh directory below each directory that is measured: at most [MaxWorkers] files, with a
// directory for each if need be, and a listing of a hundred. It is removed when [Run] returns, for whatever reason. What a
// run that was killed left behind is named and not touched, as it might belong to one that is at work on another host.
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
	flags.IntVar(&plan.Workers, "workers", 1, "how many work at the same time, each on a name of its own; handovers are between two")
	flags.DurationVar(&plan.Duration, "duration", 2*time.Second, "how long each figure is measured")
	flags.BoolVar(&plan.Together, "together", false, "spread the workers over all directories at once")
	flags.BoolVar(&plan.OwnDirs, "own-dirs", false, "give each worker a directory of its own")
	only := flags.String("only", "", "measure only these, by comma: "+strings.Join(names(), ", "))
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
