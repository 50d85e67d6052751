// Command compare measures lockfs, etcd, GlusterFS and the local disk, on one machine and in one run:
//
//	go run -C test/bench ./compare
//
// README.md in the parent folder explains the rows. The command needs root, /dev/fuse and iproute2. It is the
// first process of new namespaces, so its child processes end with it in every case.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	rounds   int
	duration time.Duration
	workers  int
	idle     time.Duration
	locks    int
	parent   string // parent of the data directories
	disks    bool   // a separate disk for each node
	lockfs   string // the program; empty: build it
	source   string // the repository

	dir string // temporary, removed at the end
}

func main() {
	runtime.LockOSThread() // the kernel ends the child processes of this thread with it
	if len(os.Args) > 1 && os.Args[1] == inside {
		os.Exit(report(compare(os.Args[2:])))
	}
	os.Exit(report(outside()))
}

func report(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "compare:", err)
	return 1
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.IntVar(&s.rounds, "rounds", 3, "how often each figure is measured")
	flags.DurationVar(&s.duration, "duration", 2*time.Second, "how long each time")
	flags.IntVar(&s.workers, "workers", 64, "how many work at the same time where it is not one")
	flags.DurationVar(&s.idle, "idle", 30*time.Second, "for how long to look at lockfs with ten mounts and nothing to do")
	flags.IntVar(&s.locks, "locks", 0, "how many locks to hold, to see what that changes (a million takes twenty minutes)")
	flags.StringVar(&s.parent, "dir", "/var/tmp", "a directory on the disk that all data is written to")
	flags.BoolVar(&s.disks, "disks", false, "give each node a disk of its own, in memory, with a flush that takes as long as on the disk of -dir")
	flags.StringVar(&s.lockfs, "lockfs", "", "a built lockfs (default: it is built)")
	flags.StringVar(&s.source, "source", "../..", "the repository of lockfs")
	flags.StringVar(&s.dir, "work", "", "for the program itself")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 || s.rounds < 0 || s.workers < 1 {
		return s, errors.New("it takes no arguments, and at least one worker")
	}
	return s, nil
}

// outside builds the programs, runs the comparison in new namespaces, and removes its files.
func outside() (err error) {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("it makes namespaces, which needs root")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if s.dir, err = os.MkdirTemp(s.parent, "lockfs-compare-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.build(ctx); err != nil {
		return err
	}
	return sandboxed(ctx, append([]string{inside}, append(os.Args[1:], "-work", s.dir)...))
}

func (s *settings) program(name string) string { return filepath.Join(s.dir, name) }

func (s *settings) lockfsProgram() string { return s.program("lockfs") }
func (s *settings) etcdProgram() string   { return s.program("etcd") }

// contestProgram measures directories of any file system.
func (s *settings) contestProgram() string { return s.program("contest") }

func (s *settings) build(ctx context.Context) error {
	fmt.Fprintln(os.Stderr, "building")
	bench := []string{"go", "build", "-C", filepath.Join(s.source, "test/bench"), "-buildvcs=false", "-o"}
	var builds [][]string
	for _, name := range []string{"contest", "etcd", "bare", "slowdisk"} {
		builds = append(builds, append(slices.Clone(bench), s.program(name), "./"+name))
	}
	if s.lockfs == "" {
		builds = append(builds, []string{"go", "build", "-C", s.source, "-buildvcs=false", "-o", s.lockfsProgram(), "./cmd/lockfs"})
	} else {
		builds = append(builds, []string{"cp", s.lockfs, s.lockfsProgram()})
	}
	for _, args := range builds {
		if output, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output)
		}
	}
	return nil
}

// compare runs in the namespaces.
func compare(args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := furnish(); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	daemons := &daemons{dir: s.dir, fail: fail}
	if err := s.measure(ctx, daemons); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}

func (s *settings) measure(ctx context.Context, d *daemons) (err error) {
	c := &contestants{settings: s}
	if c.local, err = d.folder("local"); err != nil {
		return err
	}
	if s.disks {
		if err := s.makeDisks(ctx, d); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "starting lockfs")
	if c.servers, c.client, err = startLockfs(s, d); err != nil {
		return err
	}
	idle := 0.0
	if s.idle > 0 {
		if idle, err = c.idle(ctx, d); err != nil {
			return err
		}
	}
	if s.rounds > 0 {
		if err := c.startOthers(ctx, d); err != nil {
			return err
		}
	}
	if err := c.describe(ctx); err != nil {
		return err
	}
	table := newTable()
	for round := range s.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, s.rounds)
		if err := c.round(ctx, table); err != nil {
			return err
		}
	}
	fmt.Printf("%s\n%s, %d cores; data on %s, with fsync; %d rounds, %v for each figure\n",
		strings.Join(c.versions, "\n"), c.kernel, runtime.NumCPU(), c.disk, s.rounds, s.duration)
	if s.rounds > 0 {
		fmt.Println()
		if err := table.print(os.Stdout); err != nil {
			return err
		}
	}
	if s.idle > 0 {
		fmt.Printf("\nidle, three servers and %d mounts: %.2f %% of one core\n", idleMounts, idle)
	}
	if s.locks > 0 {
		return c.hold(ctx, d)
	}
	return nil
}
