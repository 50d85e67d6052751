package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"lockfs/test/stats"
)

// operation returns the repeated work of one worker, on its own keys.
type operation struct {
	name  string
	start func(endpoint, int) func(context.Context) error
}

var operations = []operation{
	{"mutex", mutex},
	{"create+put+delete", key},
	{"get", get},
}

// endpoint is a member with a session.
type endpoint struct {
	url     string
	client  *clientv3.Client
	session *concurrency.Session
}

// mutex locks and unlocks etcd's own mutex, in an existing session.
func mutex(e endpoint, worker int) func(context.Context) error {
	lock := concurrency.NewMutex(e.session, fmt.Sprint("mutex", worker))
	return func(ctx context.Context) error {
		if err := lock.Lock(ctx); err != nil {
			return err
		}
		return lock.Unlock(ctx)
	}
}

// content is as long as the locks of lockfs bench.
const content = "host-of-holder 4711\n"

// key makes the three changes of a lock file: it creates a key unless it exists, writes to it, and deletes
// it.
func key(e endpoint, worker int) func(context.Context) error {
	name := fmt.Sprint("key", worker)
	absent := clientv3.Compare(clientv3.CreateRevision(name), "=", 0)
	return func(ctx context.Context) error {
		created, err := e.client.Txn(ctx).If(absent).Then(clientv3.OpPut(name, "")).Commit()
		if err != nil {
			return err
		}
		if !created.Succeeded {
			return fmt.Errorf("%s is there already", name)
		}
		if _, err := e.client.Put(ctx, name, content); err != nil {
			return err
		}
		_, err = e.client.Delete(ctx, name)
		return err
	}
}

// get is a linearizable read of a key.
func get(e endpoint, worker int) func(context.Context) error {
	key := fmt.Sprint("get", worker)
	made := false
	return func(ctx context.Context) error {
		if !made {
			if _, err := e.client.Put(ctx, key, content); err != nil {
				return err
			}
			made = true
		}
		_, err := e.client.Get(ctx, key)
		return err
	}
}

// bench measures the endpoints in turn, each for a part of a second, or all together, like lockfs bench.
func bench(args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	workers := flags.Int("workers", 1, "how many work at the same time")
	duration := flags.Duration("duration", 2*time.Second, "measuring time of each figure")
	together := flags.Bool("together", false, "spread the workers over all endpoints at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	endpoints, err := connect(flags.Args())
	if err != nil {
		return err
	}
	report := stats.Report{
		Version: "etcd " + version.Version, Cores: runtime.NumCPU(), Workers: *workers, Seconds: duration.Seconds(),
	}
	var targets [][]endpoint
	for _, e := range endpoints {
		report.Directories = append(report.Directories, stats.Directory{Path: e.url, Type: "etcd"})
		targets = append(targets, []endpoint{e})
	}
	if *together {
		targets = [][]endpoint{endpoints}
	}
	for _, op := range operations {
		results, err := measure(op, targets, *workers, *duration)
		if err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		report.Results = append(report.Results, results...)
	}
	for _, e := range endpoints {
		if err := errors.Join(e.session.Close(), e.client.Close()); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func connect(urls []string) (endpoints []endpoint, err error) {
	for _, url := range urls {
		e := endpoint{url: url}
		if e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: dialTimeout}); err != nil {
			return nil, err
		}
		if e.session, err = concurrency.NewSession(e.client); err != nil {
			return nil, err
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

func measure(op operation, targets [][]endpoint, workers int, duration time.Duration) ([]stats.Result, error) {
	ctx := context.Background()
	crews, samples := make([]stats.Crew, len(targets)), make([]stats.Samples, len(targets))
	for i, t := range targets {
		for worker := range workers {
			once := op.start(t[worker%len(t)], worker)
			crews[i].Add(func() error { return once(ctx) })
		}
	}
	rounds, length := stats.Parts(duration)
	for range rounds {
		for i := range crews {
			if err := crews[i].Run(ctx, length, &samples[i]); err != nil {
				return nil, err
			}
		}
	}
	results := make([]stats.Result, len(targets))
	for i, t := range targets {
		var urls []string
		for _, e := range t {
			urls = append(urls, e.url)
		}
		results[i] = samples[i].Result(op.name, urls)
	}
	stats.SetRatios(results)
	return results, nil
}

// leader prints the endpoint of the leader.
func leader(urls []string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: dialTimeout})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	for _, url := range urls {
		status, err := client.Status(ctx, url)
		if err != nil {
			return err
		}
		if status.Leader == status.Header.MemberId {
			fmt.Println(url)
			return nil
		}
	}
	return fmt.Errorf("none of %s leads", strings.Join(urls, ", "))
}
