package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// Shift is ordinary load for a cluster: sessions that open, create, use and remove locks, and close.
type Shift struct {
	Servers  []string
	Workers  int // each with one session at a time, on a host of its own name
	Sessions int // in all
	Locks    int // in each session, one after the other
}

// Commands returns the number of commands of a shift.
func (s *Shift) Commands() int { return s.Sessions * (ofSession + s.Locks*ofLock) }

const (
	ofLock    = 10
	ofSession = 2 // besides those of its locks
)

// Done is the result of a shift.
type Done struct {
	Sessions, Locks, Commands int
	Took                      time.Duration
	Opening                   []time.Duration // times to open a session, sorted: at most the number of quantiles
	Taking                    []time.Duration // times to create a lock exclusively, likewise
}

const shiftWord = "crowd-shift"

// Args returns the arguments for a process with this shift.
func (s *Shift) Args() []string { return args(shiftWord, s) }

// do works and prints its result as a line of JSON.
func (s *Shift) do() error {
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(s.Sessions))
	var working sync.WaitGroup
	workers := make([]shiftWorker, s.Workers)
	failures := make([]error, s.Workers)
	for i := range workers {
		w := &workers[i]
		w.shift, w.number = s, i
		working.Go(func() {
			for left.Add(-1) >= 0 && failures[i] == nil {
				failures[i] = w.session()
			}
		})
	}
	working.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	d := Done{Took: time.Since(began)}
	for _, w := range workers {
		d.Sessions += w.done.Sessions
		d.Locks += w.done.Locks
		d.Commands += w.done.Commands
		d.Opening = append(d.Opening, w.done.Opening...)
		d.Taking = append(d.Taking, w.done.Taking...)
	}
	d.Opening, d.Taking = thin(d.Opening), thin(d.Taking)
	return json.NewEncoder(os.Stdout).Encode(d)
}

// thin sorts times and returns evenly spaced ones.
func thin(times []time.Duration) (some []time.Duration) {
	const most = 101
	slices.Sort(times)
	if len(times) <= most {
		return times
	}
	for i := range most {
		some = append(some, times[i*(len(times)-1)/(most-1)])
	}
	return some
}

type shiftWorker struct {
	shift  *Shift
	number int
	made   int
	done   Done
}

// session opens a session, works in it, and closes it.
func (w *shiftWorker) session() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	client, err := session.Dial(ctx, w.shift.Servers, session.Config{
		Host: fmt.Sprintf("worker-%d", w.number), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}
	w.done.Opening = append(w.done.Opening, time.Since(began))
	w.done.Sessions++
	return errors.Join(w.work(ctx, client), client.Close(ctx))
}

// work creates a file to lock by flock and fcntl, one lock after the other, and removes the file.
func (w *shiftWorker) work(ctx context.Context, client *session.Client) error {
	name := fmt.Appendf(nil, "file-%d", w.number)
	file, err := w.make(ctx, client, name)
	if err != nil {
		return err
	}
	for range w.shift.Locks {
		if err := w.lock(ctx, client, file.GetIno()); err != nil {
			return err
		}
		w.done.Locks++
	}
	return w.remove(ctx, client, name)
}

func (w *shiftWorker) make(ctx context.Context, client *session.Client, name []byte) (*storepb.Attr, error) {
	made, err := w.command(ctx, client, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: 1, Name: name, Mode: syscall.S_IFREG | 0o644, Exclusive: true,
	}}})
	return made.GetAttr(), err
}

func (w *shiftWorker) remove(ctx context.Context, client *session.Client, name []byte) error {
	_, err := w.command(ctx, client, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: 1, Name: name}}})
	return err
}

// lock creates a lock exclusively, writes its holder three times, locks a file by flock and fcntl meanwhile,
// and removes it.
func (w *shiftWorker) lock(ctx context.Context, client *session.Client, file uint64) error {
	w.made++
	name := fmt.Appendf(nil, "lock-%d-%d", w.number, w.made)
	began := time.Now()
	made, err := w.make(ctx, client, name)
	if err != nil {
		return err
	}
	w.done.Taking = append(w.done.Taking, time.Since(began))
	ino, version := made.GetIno(), made.GetVersion()
	says := func() error {
		content := fmt.Appendf(nil, "%d\n", os.Getpid())
		said, err := w.command(ctx, client, &storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{Ino: ino, IfVersion: version, Content: content}}})
		version = said.GetAttr().GetVersion()
		return err
	}
	locks := func(kind storepb.LockKind) error {
		_, err := w.command(ctx, client, &storepb.Op{Op: &storepb.Op_TakeLock{TakeLock: &storepb.TakeLock{
			Ino: file, Kind: kind, Type: storepb.LockType_EXCLUSIVE, Owner: 1, End: 1<<63 - 1, Pid: uint32(os.Getpid()), Session: uint64(client.Session()),
		}}})
		if err == nil {
			_, err = w.command(ctx, client, &storepb.Op{Op: &storepb.Op_DropLocks{DropLocks: &storepb.DropLocks{Ino: file, Kind: kind, Owners: []uint64{1}}}})
		}
		return err
	}
	for _, step := range []func() error{
		says,
		func() error { return locks(storepb.LockKind_FLOCK) },
		says,
		func() error { return locks(storepb.LockKind_RECORD) },
		says,
		func() error {
			_, err := w.command(ctx, client, &storepb.Op{Op: &storepb.Op_SetAttr{SetAttr: &storepb.SetAttr{Ino: ino, MtimeNow: true}}})
			return err
		},
		func() error { return w.remove(ctx, client, name) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// command runs a command that must succeed.
func (w *shiftWorker) command(ctx context.Context, client *session.Client, op *storepb.Op) (*storepb.Result, error) {
	result, err := client.Mutate(ctx, &storepb.Caller{Pid: uint32(os.Getpid())}, op)
	if err != nil {
		return nil, err
	}
	if result.GetCode() != storepb.Code_OK {
		return nil, fmt.Errorf("%v: %v", op, result.GetCode())
	}
	w.done.Commands++
	return result, nil
}
