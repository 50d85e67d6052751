// Command etcd is the peer for comparisons with lockfs: a member of an etcd cluster, and clients that acquire
// locks in a loop. It is a module of its own, so lockfs does not depend on etcd.
//
//	etcd server FLAGS                 is etcd
//	etcd leader ENDPOINT...           prints the leader's endpoint
//	etcd bench [FLAGS] ENDPOINT...    measures members, and prints a report like lockfs bench --json
//
// For BenchmarkHandover:
//
//	etcd mutex ENDPOINT ROUNDS  locks a mutex of etcd's own Go client, in an existing session
//	etcd flock FILE ROUNDS      locks by flock(2)
//
// For each round a client prints four times: request, acquisition, begin of release, end of release. They are
// in nanoseconds of CLOCK_MONOTONIC, the same for all processes of a machine. The client holds the lock for
// HOLD, a duration in the environment.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"golang.org/x/sys/unix"
)

const dialTimeout = 30 * time.Second

// locker is a lock with a waiting acquire.
type locker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "server":
		etcdmain.Main(append([]string{"etcd"}, args[1:]...))
		return nil
	case "leader":
		return leader(args[1:])
	case "bench":
		return bench(args[1:])
	}
	return client(args)
}

func client(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("called with %q; see its source", args)
	}
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	hold, err := time.ParseDuration(os.Getenv("HOLD"))
	if err != nil {
		return err
	}
	lock, err := open(args[0], args[1])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for range rounds {
		if err := round(lock, hold); err != nil {
			return err
		}
	}
	return nil
}

func open(kind, where string) (locker, error) {
	switch kind {
	case "flock":
		file, err := os.OpenFile(where, os.O_RDWR|os.O_CREATE, 0o666)
		return flock{file}, err
	case "mutex":
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{where}, DialTimeout: dialTimeout})
		if err != nil {
			return nil, err
		}
		session, err := concurrency.NewSession(client)
		if err != nil {
			return nil, err
		}
		return concurrency.NewMutex(session, "lock"), nil
	}
	return nil, fmt.Errorf("%q is neither flock nor mutex", kind)
}

func round(lock locker, hold time.Duration) error {
	ctx := context.Background()
	asked := now()
	if err := lock.Lock(ctx); err != nil {
		return err
	}
	had := now()
	if hold > 0 {
		time.Sleep(hold)
	}
	releasing := now()
	if err := lock.Unlock(ctx); err != nil {
		return err
	}
	_, err := fmt.Println(asked, had, releasing, now())
	return err
}

func now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return now.Nano()
}

// flock is a lock of flock(2).
type flock struct{ file *os.File }

func (f flock) Lock(context.Context) error   { return unix.Flock(int(f.file.Fd()), unix.LOCK_EX) }
func (f flock) Unlock(context.Context) error { return unix.Flock(int(f.file.Fd()), unix.LOCK_UN) }
