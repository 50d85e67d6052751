// Package load simulates many mounts in one process: clients of the API with a session, keepalives and a
// lease each. They look at a lock periodically ([Plan]), or create and remove locks ([Shift]).
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// Plan is the work of one process of a crowd.
type Plan struct {
	Servers       []string
	First, Mounts int
	Every         time.Duration
	Name          string
}

const word = "crowd-worker"

// Main runs the plan or shift of a process started for it, and then does not return.
func Main() {
	if len(os.Args) != 3 {
		return
	}
	does := map[string]interface{ do() error }{word: new(Plan), shiftWord: new(Shift), floorWord: new(Floor)}[os.Args[1]]
	if does == nil {
		return
	}
	err := json.Unmarshal([]byte(os.Args[2]), does)
	if err == nil {
		err = does.do()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// do prints a line whenever all mounts have answers to queries sent after some time: this time, in ns since
// the epoch, and the number of answers.
func (p *Plan) do() error {
	var answers atomic.Int64
	last := make([]atomic.Int64, p.Mounts) // the time of the last answered query, in ns since the epoch
	var opening sync.WaitGroup
	var failure atomic.Pointer[error]
	limit := make(chan struct{}, 20)
	for i := range p.Mounts {
		opening.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			client, err := session.Dial(ctx, p.Servers, session.Config{
				Host: fmt.Sprintf("crowd-%d", p.First+i), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			if err != nil {
				failure.Store(&err)
				return
			}
			go p.poll(client, &answers, &last[i])
		})
	}
	opening.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	for {
		began := time.Now().UnixNano()
		for i := range last {
			for last[i].Load() < began {
				time.Sleep(time.Millisecond)
			}
		}
		fmt.Println(began, answers.Load())
	}
}

// poll looks at the lock like stat(2): the directory, the name, and its inode.
func (p *Plan) poll(client *session.Client, answers, last *atomic.Int64) {
	look := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if _, err := client.Query(ctx, &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: 1}}}); err != nil {
			return err
		}
		found, err := client.Query(ctx, &storepb.Query{Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: 1, Name: []byte(p.Name)}}})
		if err != nil {
			return err
		}
		if found.GetAttr() == nil {
			return errors.New("it is not there")
		}
		_, err = client.Query(ctx, &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: found.GetAttr().GetIno()}}})
		return err
	}
	for {
		began := time.Now()
		if look() == nil {
			answers.Add(1)
			last.Store(began.UnixNano())
		}
		time.Sleep(p.Every)
	}
}

// Args returns the arguments for a process with this plan.
func (p *Plan) Args() []string { return args(word, p) }

func args(word string, does any) []string {
	data, err := json.Marshal(does)
	if err != nil {
		panic(err) // it can always be encoded
	}
	return []string{word, string(data)}
}
