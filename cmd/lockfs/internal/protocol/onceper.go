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

// turn is the lock of a command that runs once in each period. A file, the stamp, records the last turn. The
// holder writes it before the command begins, so that a host that dies has used its turn, and after the
// command has ended.
type turn struct {
	runLock

	warn    io.Writer
	stamp   string // path
	period  *period
	retry   bool // after a failed run
	command []string
	now     time.Time // start of lockfs, by the clock of the stamp's file system
	former  []byte    // the previous stamp; nil: none
	mine    record    // zero: not written yet
}

// turnLock returns the path of a stamp's lock.
func turnLock(stamp string) string { return stamp + ".lock" }

func newTurn(warn io.Writer, stamp string, p *period, retry bool, command []string, lock runLock) (*turn, error) {
	now, err := timeOn(stamp)
	if err != nil {
		return nil, err
	}
	return &turn{runLock: lock, warn: warn, stamp: stamp, period: p, retry: retry, command: command, now: now}, nil
}

// timeOn returns the time of a new file: the clock of its file system, on a mount of lockfs the cluster's.
func timeOn(stamp string) (time.Time, error) {
	f, err := createBeside(stamp, 0o600)
	if err != nil {
		return time.Time{}, explainNoDir(err)
	}
	info, err := f.Stat()
	err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// createBeside creates a temporary file. It does not use O_EXCL, as a lock would.
func createBeside(stamp string, mode fs.FileMode) (*os.File, error) {
	path := filepath.Join(filepath.Dir(stamp), lockfact.TemporaryName())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	var of *fs.PathError
	if errors.As(err, &of) { // the caller does not know the temporary file
		err = &fs.PathError{Op: of.Op, Path: stamp, Err: of.Err}
	}
	return f, err
}

// acquire implements [runLock]. It takes the turn.
func (t *turn) acquire(ctx context.Context) (token string, err error) {
	if err := t.check(); err != nil { // without waiting for the holder
		return "", err
	}
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go t.awaitOver(waiting, stop)
	token, err = t.runLock.acquire(waiting)
	switch over := context.Cause(waiting); {
	case over != nil && ctx.Err() == nil && waitedInVain(err):
		return "", over
	case err != nil:
		return "", err
	}
	if err = t.check(); err == nil {
		err = t.begin(ctx)
	}
	if err == nil { // begin may have taken longer than the lock lives
		err = t.confirm(ctx)
	}
	if err != nil {
		return "", errors.Join(err, t.giveBack(ctx))
	}
	return token, nil
}

// confirm implements [runLock].
func (t *turn) confirm(ctx context.Context) error {
	err := t.runLock.confirm(ctx)
	if err == nil {
		return nil
	}
	return cli.Stopped(ctx, fmt.Errorf("the command is not started: %w", err))
}

// turnNoticeAfter is how long a command waits before its first notice. The holder may be about to begin the
// turn, and cron should not send mail about this.
const turnNoticeAfter = 5 * time.Second

// overInterval is how often a waiter checks whether the turn is over.
const overInterval = 200 * time.Millisecond

// awaitOver ends the wait for the lock when its holder has begun the turn. A waiter need not wait for the end
// of the run.
func (t *turn) awaitOver(ctx context.Context, stop context.CancelCauseFunc) {
	for pause.For(ctx, overInterval) == nil {
		var over *cli.ExitStatus
		if err := t.check(); errors.As(err, &over) {
			stop(over)
		}
	}
}

// check returns an error if the turn is not available: a [cli.ExitStatus] if it is over.
func (t *turn) check() error {
	last, err := readRecord(t.stamp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	from, _ := t.period.at(t.now)
	if last.from.After(from) {
		if err := t.checkFuture(last); err != nil {
			return err
		}
	}
	if last.from.Before(from) || t.retry && last.from.Equal(from) && last.state != succeeded {
		return nil
	}
	var said error
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err == nil {
		said = fmt.Errorf("the turn is over: the run of the period from %s %s, on %s; `cat %s` shows it",
			last.from.Format(time.RFC3339), last.state, last.host, cli.ShellWord(t.stamp))
	}
	return cli.Exit(cli.ExitTurnOver, said)
}

// clockSlack is how far a clock may have been set back without an error.
const clockSlack = time.Minute

// checkFuture rejects a stamp from the future, by the clock of its file system: nothing would run until then.
// A turn later than this process's is allowed if it began during the wait.
func (t *turn) checkFuture(last *record) error {
	now, err := timeOn(t.stamp)
	if err != nil || last.from.Before(now.Add(clockSlack)) {
		return err
	}
	return fmt.Errorf("%s has a turn that begins at %s, but there it is %s now: correct the clock that is wrong, or remove the stamp",
		cli.Word(t.stamp), last.from.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

func (t *turn) begin(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if t.former, err = readStamp(t.stamp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	from, until := t.period.at(t.now)
	t.mine = record{
		period: t.period.text, from: from, until: until, state: started, host: host, pid: os.Getpid(),
		command: strings.Join(t.command, " "), began: t.now,
	}
	return replaceStamp(t.stamp, []byte(t.mine.render()), func() error { return t.confirm(ctx) })
}

// How long, and how often, lockfs tries to record the end of a turn. It holds the lock meanwhile.
const (
	noteTime  = time.Minute
	notePause = time.Second
)

// release implements [runLock].
func (t *turn) release(ctx context.Context, state *os.ProcessState) error {
	t.mine.state, t.mine.code = ranBadly, exitOf(state)
	if t.mine.code == 0 {
		t.mine.state = succeeded
	}
	deadline := time.Now().Add(noteTime)
	err := t.end(ctx)
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(notePause)
		err = t.end(ctx)
	}
	if err != nil {
		fmt.Fprintf(t.warn, "lockfs: %s does not say that the command %s: %v\n", cli.Word(t.stamp), t.mine.state, err)
	}
	return t.runLock.release(ctx, state)
}

// giveBack implements [runLock]. No command ran, so the turn has not begun.
func (t *turn) giveBack(ctx context.Context) error {
	err := persistently(ctx, t.undo)
	switch {
	case cli.IsLost(err): // only the holder may write the stamp
		err = nil
	case err != nil:
		err = fmt.Errorf("%s still says that the command was started: %w", cli.Word(t.stamp), err)
	}
	return errors.Join(err, t.runLock.giveBack(ctx))
}

// undo restores the previous stamp.
func (t *turn) undo(ctx context.Context) error {
	if t.mine == (record{}) {
		return nil
	}
	err := t.ours()
	switch {
	case errors.Is(err, errAnothers) || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case t.former != nil:
		return replaceStamp(t.stamp, t.former, func() error { return t.runLock.confirm(ctx) })
	}
	if err := t.runLock.confirm(ctx); err != nil {
		return err
	}
	return os.Remove(t.stamp)
}

// end records the end of the turn. It leaves the stamp of another turn alone if this process has lost the
// lock.
func (t *turn) end(ctx context.Context) error {
	mayEnd := func() error {
		err := t.ours()
		if errors.Is(err, errAnothers) && t.runLock.confirm(ctx) == nil { // its holder lost the lock, and wrote late
			return nil
		}
		return err
	}
	err := mayEnd()
	if err == nil {
		t.mine.ended, err = timeOn(t.stamp)
	}
	if err == nil {
		err = replaceStamp(t.stamp, []byte(t.mine.render()), mayEnd)
	}
	if errors.Is(err, errAnothers) {
		return nil
	}
	return err
}

var errAnothers = errors.New("the stamp is another turn's")

// ours returns nil if the stamp is of this turn.
func (t *turn) ours() error {
	last, err := readRecord(t.stamp)
	if err != nil {
		return err
	}
	ours := last.host == t.mine.host && last.pid == t.mine.pid && last.from.Equal(t.mine.from) &&
		last.began.Unix() == t.mine.began.Unix() // containers of one name may have the same pids
	if !ours {
		return errAnothers
	}
	return nil
}

// States of a turn.
const (
	started   = "started"
	succeeded = "succeeded"
	ranBadly  = "failed"
)

// record is the content of a stamp.
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

// replaceStamp renames a new stamp into place, so there is always a whole one. It calls may just before: a
// late write must not replace another turn's stamp.
func replaceStamp(path string, content []byte, may func() error) error {
	f, err := createBeside(path, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = may()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// maxStamp exceeds the size of any stamp, in bytes.
const maxStamp = 256 << 10

// readStamp reads a regular file. It does not wait for the writer of a FIFO.
func readStamp(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: give another path for the stamp of --once-per", cli.Word(path))
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxStamp))
}

func readRecord(path string) (*record, error) {
	content, err := readStamp(path)
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
		return nil, fmt.Errorf("%s is no stamp of lockfs run --once-per: give another path, or remove the file", cli.Word(filepath.Clean(path)))
	}
	r.from = from
	r.began, _ = time.Parse(time.RFC3339, values["began"])
	return r, nil
}
