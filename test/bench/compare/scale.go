package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// idleMounts is the number of mounts in the idle measurement.
const idleMounts = 10

// Pauses before a measurement.
const (
	settled = 5 * time.Second
	written = 30 * time.Second // for the last snapshot of many locks
)

// idle returns the processor use of an idle lockfs, in percent of one core.
func (c *contestants) idle(ctx context.Context, d *daemons) (percent float64, err error) {
	for i := len(c.servers) + 1; i < idleMounts; i++ {
		guest, _, err := startMount(c.settings, d, fmt.Sprint("client-", i))
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, guest.stop()) }()
	}
	fmt.Fprintf(os.Stderr, "%d mounts with nothing to do for %v\n", idleMounts, c.settings.idle)
	if err := pause(ctx, settled); err != nil {
		return 0, err
	}
	before, err := processorTime()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, c.settings.idle); err != nil {
		return 0, err
	}
	after, err := processorTime()
	return 100 * (after - before).Seconds() / c.settings.idle.Seconds(), err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// processorTime returns the processor time of all lockfs processes.
func processorTime() (total time.Duration, err error) {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || string(comm) != "lockfs\n" {
			continue // it has ended, or is another program
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			return 0, err
		}
		var used unix.Timespec
		if err := unix.ClockGettime(clockOf(pid), &used); err != nil {
			return 0, fmt.Errorf("processor time of %d: %w", pid, err)
		}
		total += time.Duration(used.Nano())
	}
	return total, nil
}

// clockOf is clock_getcpuclockid(3).
func clockOf(pid int) int32 {
	const scheduled = 2 // in nanoseconds
	return int32(^pid)<<3 | scheduled
}

// holdersPerDir is the number of locks in one directory.
const holdersPerDir = 1000

// hold measures many held locks: the time of a cycle before and after, their memory, and the start time of a
// server.
func (c *contestants) hold(ctx context.Context, d *daemons) error {
	leader, err := lockfsLeader(ctx, c.settings)
	if err != nil {
		return err
	}
	follower := slices.IndexFunc(serverNames, func(name string) bool { return name != leader })
	before, mutexBefore, err := c.cycle(ctx, c.servers[leader].mount)
	if err != nil {
		return err
	}
	memory, err := residentOf(c.servers[leader].process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.fill(ctx); err != nil {
		return err
	}
	filled := time.Since(began)
	if err := pause(ctx, written); err != nil {
		return err
	}
	after, mutexAfter, err := c.cycle(ctx, c.servers[leader].mount)
	if err != nil {
		return err
	}
	more, err := residentOf(c.servers[leader].process.Pid)
	if err != nil {
		return err
	}
	if err := c.servers[serverNames[follower]].stop(); err != nil {
		return err
	}
	began = time.Now()
	if _, err := startServer(c.settings, d, follower); err != nil {
		return err
	}
	started := time.Since(began)
	fmt.Printf("%d held locks, taken in %v: a cycle at the leader takes %.0f us, %.2f times the %.0f us before; "+
		"the leader has %.0f MB more (%.0f bytes for each); a server that is stopped and started is ready after %.1f s\n",
		c.settings.locks, filled.Round(time.Second), after, after/before, before,
		float64(more-memory)/1e6, float64(more-memory)/float64(c.settings.locks), started.Seconds())
	if mutexBefore > 0 {
		fmt.Printf("etcd's mutex, which has nothing to do with them, takes %.2f times as long as before\n", mutexAfter/mutexBefore)
	}
	return nil
}

// cycle returns the median in one directory, in microseconds. mutex is the median of etcd's mutex, as a
// reference for the load of the machine; 0 without etcd.
func (c *contestants) cycle(ctx context.Context, mount string) (cycle, mutex float64, err error) {
	const rounds = 5
	duration := max(2*time.Second, c.settings.duration).String()
	var cycles, mutexes []float64
	for range rounds {
		report, err := c.run(ctx, c.settings.contestProgram(), "--only", "cycle", "--duration", duration, mount)
		if err != nil {
			return 0, 0, err
		}
		cycles = append(cycles, report.Results[0].Median)
		if len(c.endpoints) == 0 {
			continue
		}
		if report, err = c.run(ctx, c.settings.etcdProgram(), "bench", "--duration", duration, c.endpoints[0]); err != nil {
			return 0, 0, err
		}
		mutexes = append(mutexes, report.Results[0].Median)
	}
	return middle(cycles), middle(mutexes), nil
}

// fill acquires the locks, through all mounts.
func (c *contestants) fill(ctx context.Context) error {
	mounts := []string{c.client}
	for _, server := range c.servers {
		mounts = append(mounts, server.mount)
	}
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, c.settings.workers)
	for worker := range c.settings.workers {
		group.Go(func() {
			for ctx.Err() == nil {
				dir := int(next.Add(1) - 1)
				if dir*holdersPerDir >= c.settings.locks {
					return
				}
				if err := takeLocks(filepath.Join(mounts[worker%len(mounts)], fmt.Sprint("held-", dir)), min(holdersPerDir, c.settings.locks-dir*holdersPerDir)); err != nil {
					errs <- err
					return
				}
				if dir%50 == 0 {
					fmt.Fprintf(os.Stderr, "about %d locks are held\n", dir*holdersPerDir)
				}
			}
		})
	}
	group.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(append(all, ctx.Err())...)
}

func takeLocks(dir string, locks int) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	content := fmt.Appendln(nil, os.Getpid())
	for i := range locks {
		file, err := os.OpenFile(filepath.Join(dir, fmt.Sprint("lock-", i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// residentOf returns the memory of a process in bytes.
func residentOf(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.Atoi(kilobytes)
	return n << 10, err
}
