package auditverify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"lockfs/raftstore/eventchain"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

type log struct {
	name     string
	lines    []*line
	problems []*Problem
	torn     bool // the last line is incomplete

	byNumber map[uint64]*line
}

type line struct {
	file  string
	at    int // line number, from 1
	event *storepb.Event
	sound bool // its hash matches the contents
}

// source is the files of a log, oldest first.
type source struct {
	name  string
	files []string
}

var rotated = regexp.MustCompile(`^(.*)\.(\d+)$`)

// sourcesOf finds the files of logs. A directory means its audit.jsonl, and each file includes its rotated
// files.
func sourcesOf(paths []string) (sources []source, err error) {
	for _, path := range paths {
		if path == "-" {
			sources = append(sources, source{"standard input", []string{path}})
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			path = filepath.Join(path, "audit.jsonl")
		}
		name := path
		if old := rotated.FindStringSubmatch(path); old != nil {
			name = old[1]
		}
		if slices.ContainsFunc(sources, func(s source) bool { return s.name == name }) {
			continue
		}
		files, err := withRotated(name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{name, files})
	}
	return sources, nil
}

// withRotated returns the rotated files of a log, highest number first, and then the file itself if it
// exists.
func withRotated(path string) ([]string, error) {
	all, err := filepath.Glob(globEscaped(path) + ".*")
	if err != nil {
		return nil, err
	}
	type old struct {
		path   string
		number int
	}
	var olds []old
	for _, found := range all {
		if m := rotated.FindStringSubmatch(found); m != nil && m[1] == path {
			if number, err := strconv.Atoi(m[2]); err == nil {
				olds = append(olds, old{found, number})
			}
		}
	}
	slices.SortFunc(olds, func(a, b old) int { return b.number - a.number })
	var files []string
	for _, o := range olds {
		files = append(files, o.path)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || len(files) == 0 {
		files = append(files, path)
	}
	return files, nil
}

var globSpecial = regexp.MustCompile(`[\[\]*?\\]`)

func globEscaped(path string) string { return globSpecial.ReplaceAllString(path, `\$0`) }

func (s source) read(stdin io.Reader) (*log, error) {
	l := &log{name: s.name, byNumber: make(map[uint64]*line)}
	for _, path := range s.files {
		from := stdin
		if path != "-" {
			file, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			defer func() { _ = file.Close() }()
			from = file
		}
		if err := l.readFile(path, from); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	l.checkOrder()
	return l, nil
}

func (l *log) readFile(path string, from io.Reader) error {
	reader := bufio.NewReaderSize(from, 1<<20)
	for at := 1; ; at++ {
		text, err := reader.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF {
			l.torn = len(text) > 0
			return nil
		}
		l.readLine(path, at, bytes.TrimSuffix(text, []byte("\n")))
	}
}

func (l *log) readLine(path string, at int, text []byte) {
	problem := func(kind Kind, number uint64, format string, args ...any) {
		l.problems = append(l.problems, &Problem{Kind: kind, Log: l.name, File: path, Line: at, Number: number, Text: fmt.Sprintf(format, args...)})
	}
	e, err := lockjson.ParseEventLine(text)
	if err != nil || e.GetNumber() == 0 || e.GetEvent() == "" {
		problem(Garbled, 0, "it is not a lockfs event")
		return
	}
	one := &line{file: path, at: at, event: e}
	switch {
	case len(e.GetHash()) == 0:
		problem(Changed, e.GetNumber(), "event %d has no hash", e.GetNumber())
	case !bytes.Equal(eventchain.Hash(e), e.GetHash()):
		problem(Changed, e.GetNumber(), "event %d was changed: its hash does not match its content", e.GetNumber())
	case !bytes.Equal(lockjson.EventLine(e), text):
		problem(Changed, e.GetNumber(), "event %d was changed, or is of a newer version: lockfs would write it differently", e.GetNumber())
	default:
		one.sound = true
	}
	if before, twice := l.byNumber[e.GetNumber()]; twice {
		problem(Repeated, e.GetNumber(), "there are two events %d, the other one in line %d of %s", e.GetNumber(), before.at, before.file)
		return
	}
	l.byNumber[e.GetNumber()] = one
	l.lines = append(l.lines, one)
}

// checkOrder checks each line against the previous one, and sorts the lines by number.
func (l *log) checkOrder() {
	highest := (*line)(nil)
	for _, one := range l.lines {
		if highest != nil && one.event.GetNumber() < highest.event.GetNumber() {
			l.problem(Moved, one, "event %d stands after event %d", one.event.GetNumber(), highest.event.GetNumber())
			continue
		}
		highest = one
	}
	slices.SortStableFunc(l.lines, func(a, b *line) int {
		if a.event.GetNumber() < b.event.GetNumber() {
			return -1
		}
		return 1
	})
	for i, one := range l.lines {
		number := one.event.GetNumber()
		var before *line
		if i > 0 {
			before = l.lines[i-1]
		}
		switch {
		case begins(one.event):
		case len(one.event.GetBefore()) == 0:
			l.problem(Unchained, one, "event %d has no hash of the one before it", number)
		case before == nil:
		case number > before.event.GetNumber()+1 && l.hasSome():
		case number > before.event.GetNumber()+1:
			l.problem(Missing, one, "%s missing between the lines of event %d and event %d: they were removed, or this server was away "+
				"for longer than the cluster keeps events for it", numbers(before.event.GetNumber()+1, number-1), before.event.GetNumber(), number)
		case !bytes.Equal(one.event.GetBefore(), before.event.GetHash()):
			l.problem(Unchained, one, "event %d does not match event %d before it: one of them was changed", number, number-1)
		}
	}
}

// hasSome reports whether a log has only the events of administrators or only refusals.
func (l *log) hasSome() bool {
	name := filepath.Base(l.name)
	return name == "audit-admin.jsonl" || name == "audit-refusals.jsonl"
}

func (l *log) problem(kind Kind, at *line, format string, args ...any) {
	l.problems = append(l.problems, &Problem{
		Kind: kind, Log: l.name, File: at.file, Line: at.at, Number: at.event.GetNumber(), Text: fmt.Sprintf(format, args...),
	})
}

func begins(e *storepb.Event) bool {
	return len(e.GetBefore()) == 0 && (e.GetNumber() == 1 || e.GetEvent() == "cluster_begun")
}

func numbers(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("event %d is", first)
	}
	return fmt.Sprintf("events %d to %d are", first, last)
}

// cluster returns the last cluster id in the log; empty: none.
func (l *log) cluster() (id string) {
	for _, one := range l.lines {
		if one.event.GetEvent() == "cluster_begun" {
			id = one.event.GetCluster()
		}
	}
	return id
}
