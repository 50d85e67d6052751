package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/lockfact"
	"lockfs/formats/pause"
)

// turn is the lock of a command that is run once in each period. What became of the last turn is in a file, the stamp,
// which is written while the lock is held: before the command begins, so that a host that dies has had its turn all the same,
// and when it has ended.
type turn struct {
	runLock

	warn    io.Writer
	stamp   string // path
	period  *period
	retry   bool // after a run that failed
	command []string
	now     time.Time // when lockfs was started, by the clock of the stamp's file system
	mine    record
}

// turnLock is the lock of a stamp.
func turnLock(stamp string) string { return stamp + ".lock" }

func newTurn(warn io.Writer, stamp string, p *period, retry bool, command []string, lock runLock) (*turn, error) {
	now, err := timeOn(stamp)
	if err != nil {
		return nil, err
	}
	return &turn{runLock: lock, warn: warn, stamp: stamp, period: p, retry: retry, command: command, now: now}, nil
}

// timeOn is the time by the clock of a file system, on a mount of lockfs the cluster's: that of a new file. It is not made
// exclusively, as a lock would be.
func timeOn(stamp string) (time.Time, error) {
	path := filepath.Join(filepath.Dir(stamp), lockfact.TemporaryName())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	var of *fs.PathError
	if errors.As(err, &of) { // nobody has heard of that file
		err = &fs.PathError{Op: of.Op, Path: stamp, Err: of.Err}
	}
	if err != nil {
		return time.Time{}, explainNoDir(err)
	}
	info, err := f.Stat()
	err = errors.Join(err, f.Close(), os.Remove(path))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// acquire is part of [runLock]. It takes the turn.
func (t *turn) acquire(ctx context.Context) (token string, err error) {
	if err := t.check(); err != nil { // without waiting for who has it
		return "", err
	}
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go t.awaitOver(waiting, stop)
	token, err = t.runLock.acquire(waiting)
	switch over := context.Cause(waiting); {
	case err != nil && over != nil && ctx.Err() == nil:
		return "", over
	case err != nil:
		return "", err
	}
	if err = t.check(); err == nil {
		err = t.begin()
	}
	if err != nil {
		return "", errors.Join(err, t.runLock.release(ctx, nil))
	}
	return token, nil
}

// turnNoticeAfter is for how long somebody waits who is not told for whom: whoever has the lock may be about to begin the turn, which is nothing
// that cron should send.
const turnNoticeAfter = 5 * time.Second

// overInterval is how often who waits looks whether the turn is over.
const overInterval = 200 * time.Millisecond

// awaitOver ends the wait for the lock when its holder has begun the turn, so that nobody waits for the end of that.
func (t *turn) awaitOver(ctx context.Context, stop context.CancelCauseFunc) {
	for pause.For(ctx, overInterval) == nil {
		var over *cli.ExitStatus
		if err := t.check(); errors.As(err, &over) {
			stop(over)
		}
	}
}

// check answers why there is no turn to be had; an [cli.ExitStatus] if it is over.
func (t *turn) check() error {
	last, err := readRecord(t.stamp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	from, _ := t.period.at(t.now)
	if last.from.Before(from) || t.retry && last.from.Equal(from) && last.state != succeeded {
		return nil
	}
	var said error
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err == nil {
		said = fmt.Errorf("the turn is over: the run of the period from %s %s, on %s; `cat %s` says more",
			last.from.Format(time.RFC3339), last.state, last.host, cli.Word(t.stamp))
	}
	return cli.Exit(cli.ExitTurnOver, said)
}

func (t *turn) begin() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	from, until := t.period.at(t.now)
	t.mine = record{
		period: t.period.text, from: from, until: until, state: started, host: host, pid: os.Getpid(),
		command: strings.Join(t.command, " "), began: t.now,
	}
	return t.mine.write(t.stamp)
}

// Until a turn's end is noted it is tried for so long, while the lock is held.
const (
	noteTime  = time.Minute
	notePause = time.Second
)

// release is part of [runLock].
func (t *turn) release(ctx context.Context, state *os.ProcessState) error {
	t.mine.state, t.mine.code = ranBadly, cli.ExitCannotRun
	if state != nil {
		t.mine.code = exitOf(state)
	}
	if t.mine.code == 0 {
		t.mine.state = succeeded
	}
	deadline := time.Now().Add(noteTime)
	err := t.end()
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(notePause)
		err = t.end()
	}
	if err != nil {
		fmt.Fprintf(t.warn, "lockfs: %s does not say that the command %s: %v\n", cli.Word(t.stamp), t.mine.state, err)
	}
	return t.runLock.release(ctx, state)
}

// end leaves the stamp alone if it is another turn's, whose holder took the lock away.
func (t *turn) end() error {
	now, err := timeOn(t.stamp)
	if err != nil {
		return err
	}
	last, err := readRecord(t.stamp)
	if err != nil {
		return err
	}
	if last.host != t.mine.host || last.pid != t.mine.pid || !last.from.Equal(t.mine.from) {
		return nil
	}
	t.mine.ended = now
	return t.mine.write(t.stamp)
}

// What became of a turn.
const (
	started   = "started"
	succeeded = "succeeded"
	ranBadly  = "failed"
)

// record is what a stamp says.
type record struct {
	period       string
	from, until  time.Time
	state        string
	host         string
	pid          int
	command      string
	began, ended time.Time // zero: it has not ended
	code         int
}

func (r *record) render() string {
	var text strings.Builder
	line := func(key, format string, values ...any) {
		fmt.Fprintf(&text, "%-9s"+format+"\n", append([]any{key}, values...)...)
	}
	line("once per", "%s, by lockfs run", r.period)
	line("from", "%s", r.from.Format(time.RFC3339))
	line("until", "%s", r.until.Format(time.RFC3339))
	line("run", "%s", r.state)
	line("on", "%s", r.host)
	line("process", "%d", r.pid)
	line("command", "%q", r.command)
	line("began", "%s", r.began.UTC().Format(time.RFC3339))
	if !r.ended.IsZero() {
		line("ended", "%s, exit code %d", r.ended.UTC().Format(time.RFC3339), r.code)
	}
	return text.String()
}

// write replaces a stamp by a rename, so that there is always one that is whole.
func (r *record) write(path string) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(r.render())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// readRecord reads a stamp.
func readRecord(path string) (*record, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for line := range strings.Lines(string(content)) {
		if len(line) > 9 {
			values[strings.TrimSpace(line[:9])] = strings.TrimSpace(line[9:])
		}
	}
	r := &record{state: values["run"], host: values["on"]}
	_, errPID := fmt.Sscan(values["process"], &r.pid)
	from, err := time.Parse(time.RFC3339, values["from"])
	known := r.state == started || r.state == succeeded || r.state == ranBadly
	if err != nil || errPID != nil || !known {
		return nil, fmt.Errorf("%s is no stamp of lockfs run --once-per: give another path, or remove it if it is nobody's", cli.Word(filepath.Clean(path)))
	}
	r.from = from
	return r, nil
}
