package protocol

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
)

// noticeAfter is the wait before the first notice, and the interval of updates on a terminal.
const noticeAfter = time.Second

// waitHelp is part of the help of commands that wait for a lock.
const waitHelp = `After one second of waiting, lockfs prints once, on standard error, which
process holds the lock, why it is not stale, and the command that would end the
wait. On a terminal it keeps that line up to date; with --json it prints a line
of JSON. On a mount that hangs, lockfs exits at most five seconds after the
time limit; it releases a lock that it acquires later.`

// notice reports the lock for which a command waits, and why. A nil notice reports nothing.
type notice struct {
	out      io.Writer
	asJSON   bool
	terminal bool
	look     lookup
	first    time.Duration // until the first report

	due  time.Time // zero: no more reports
	rows int       // of the report on the terminal
}

func newNotice(cmd *cobra.Command, asJSON bool, look lookup) *notice {
	out := cmd.ErrOrStderr()
	_, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS)
	return &notice{out: out, asJSON: asJSON, terminal: out == os.Stderr && err == nil && !asJSON, look: look, first: noticeAfter}
}

// take calls attempt, which tries to acquire a lock until its context ends, for up to wait. It reports
// between attempts, never during one. On a mount of lockfs, a process may remove or replace only the stale
// lock that it has read last.
func (n *notice) take(ctx context.Context, wait time.Duration, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	n.begin()
	defer n.end()
	for {
		until, stop := n.untilDue(ctx)
		err := attempt(until)
		interrupted := until.Err() != nil
		stop()
		if err == nil || !interrupted || ctx.Err() != nil {
			return err
		}
		n.tell()
	}
}

func (n *notice) begin() {
	if n != nil {
		n.due = time.Now().Add(n.first)
	}
}

// untilDue returns a context that also ends when a report is due.
func (n *notice) untilDue(ctx context.Context) (context.Context, context.CancelFunc) {
	if n == nil || n.due.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, n.due)
}

// tell reports the wait, unless the lock is free.
func (n *notice) tell() {
	if n.due = (time.Time{}); n.terminal {
		n.due = time.Now().Add(noticeAfter)
	}
	state, more := n.look()
	if state.State == string(formats.Free) {
		n.due = time.Now().Add(noticeAfter)
		return
	}
	state.Outcome = "waiting"
	switch {
	case n.asJSON:
		if fields, err := merged(state, more); err == nil {
			_ = cli.PrintJSONLine(n.out, fields)
		}
	case n.terminal:
		n.end()
		line := "lockfs: " + state.waitingFor()
		fmt.Fprint(n.out, line)
		n.rows = 1 + (utf8.RuneCountInString(line)-1)/terminalWidth()
	default:
		fmt.Fprintln(n.out, "lockfs: "+state.waitingFor())
	}
}

// end removes the report from a terminal.
func (n *notice) end() {
	if n == nil || n.rows == 0 {
		return
	}
	if n.rows > 1 {
		fmt.Fprintf(n.out, "\033[%dA", n.rows-1)
	}
	fmt.Fprint(n.out, "\r\033[J")
	n.rows = 0
}

// waitingFor returns the report, one line.
func (s *lockState) waitingFor() string {
	parts := []string{"waiting for " + cli.Word(s.Path)}
	holder, pid := "", fmt.Sprint(s.PID)
	switch {
	case s.Holder == pid:
		holder = " by process " + pid
	case s.Holder != "" && s.PID != 0:
		holder = " by " + cli.Text(s.Holder) + " (process " + pid + ")"
	case s.Holder != "":
		holder = " by " + cli.Text(s.Holder)
	}
	if s.Host != "" {
		holder += " on " + cli.Text(s.Host)
	}
	if s.Age != nil {
		holder += " for " + cli.Duration(time.Duration(*s.Age)*time.Second)
	}
	parts[0] += ": held" + holder
	if s.Reason != "" {
		parts = append(parts, cli.Text(s.Reason))
	}
	if s.Remedy != "" {
		parts = append(parts, "if its holder is gone: `"+s.Remedy+"`")
	}
	return strings.Join(parts, "; ")
}

// removable adds the command that removes a lock of any holder.
func removable(look lookup) lookup {
	return func() (lockState, any) {
		state, more := look()
		state.Remedy = admin.Removal(state.Path)
		return state, more
	}
}

// forcible adds the command that steals a stale lock of tower, or removes another lock.
func forcible(look lookup, command string) lookup {
	remove := removable(look)
	return func() (lockState, any) {
		state, more := remove()
		if state.State == string(formats.Stale) {
			state.Reason += ", but tower needs --force-lock"
			state.Remedy = command + " --force-lock"
		}
		return state, more
	}
}

func terminalWidth() int {
	size, err := unix.IoctlGetWinsize(int(os.Stderr.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}
