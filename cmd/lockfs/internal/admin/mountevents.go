package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// mountEvents answers queries with the events that a mount shows to this user, in order and without
// repetition.
type mountEvents struct {
	root string

	kept  []*storepb.Event      // read, but not requested yet
	began bool                  // past events have been read
	news  <-chan *storepb.Event // nil before the first wait
	fail  error                 // why news was closed
}

// ask implements askFunc.
func (m *mountEvents) ask(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	q := query.GetListEvents()
	if !m.began {
		if q.GetWait() { // before the past events, so that none is missed
			if err := m.follow(); err != nil {
				return nil, err
			}
		}
		kept, err := m.history()
		if err != nil {
			return nil, err
		}
		m.kept, m.began = kept, true
	}
	result := &storepb.Result{LastEvent: q.GetAfter()}
	take := func(e *storepb.Event) {
		if e.GetNumber() > result.LastEvent {
			result.Events, result.LastEvent = append(result.Events, e), e.GetNumber()
		}
	}
	for len(m.kept) > 0 && len(result.GetEvents()) < int(q.GetLimit()) {
		take(m.kept[0])
		m.kept = m.kept[1:]
	}
	for q.GetWait() && len(result.GetEvents()) == 0 {
		select {
		case e, more := <-m.news:
			if !more {
				return nil, m.fail
			}
			take(e)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return result, nil
}

func (m *mountEvents) open(name string) (*os.File, error) {
	return os.Open(filepath.Join(m.root, controlDir, name))
}

func (m *mountEvents) history() (kept []*storepb.Event, err error) {
	file, err := m.open("history")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	err = eachEvent(file, func(e *storepb.Event) { kept = append(kept, e) })
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return kept, err
}

// follow reads new events until this process ends.
func (m *mountEvents) follow() error {
	file, err := m.open("events")
	if err != nil {
		return err
	}
	news := make(chan *storepb.Event)
	m.news = news
	go func() {
		defer close(news)
		m.fail = eachEvent(file, func(e *storepb.Event) { news <- e })
	}()
	return nil
}

// eachEvent returns io.EOF after the last event.
func eachEvent(file *os.File, handle func(*storepb.Event)) error {
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		e, err := lockjson.ParseEventLine(line)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
		handle(e)
	}
}

// clusterTime reads cluster time from a mount.
func clusterTime(root string) (time.Time, error) {
	text, err := os.ReadFile(filepath.Join(root, controlDir, "status"))
	if err != nil {
		return time.Time{}, err
	}
	_, rest, _ := strings.Cut(string(text), "\ncluster_time=")
	at, _, _ := strings.Cut(rest, "\n")
	return time.Parse(time.RFC3339, at)
}
