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

// noticeAfter is for how long somebody waits who is not told for whom yet, and how often a terminal is told again.
const noticeAfter = time.Second

// waitHelp is part of the help of each command that waits for a lock.
const waitHelp = `After one second of waiting, lockfs prints once, on standard error, which
process holds the lock, why it is not stale, and the command that would end the
wait. On a terminal it keeps that line up to date; with --json it prints a line
of JSON. On a mount that hangs, lockfs exits at most five seconds after the
time limit; it gives back a lock that it acquires later.`

// notice tells for whom and why a command waits. Nil tells nothing.
type notice struct {
	out      io.Writer
	asJSON   bool
	terminal bool
	look     lookup
	first    time.Duration // until anything is said

	due  time.Time // zero: not any more
	rows int       // that the notice on the terminal takes
}

func newNotice(cmd *cobra.Command, asJSON bool, look lookup) *notice {
	out := cmd.ErrOrStderr()
	_, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS)
	return &notice{out: out, asJSON: asJSON, terminal: out == os.Stderr && err == nil && !asJSON, look: look, first: noticeAfter}
}

// take calls attempt, which is to take a lock until its context ends, for as long as it may wait. The notice is given
// between two attempts and never during one: on a mount of lockfs it matters which lock a process has looked at when
// it removes or replaces a stale one.
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

// untilDue ends when something is to be told, too.
func (n *notice) untilDue(ctx context.Context) (context.Context, context.CancelFunc) {
	if n == nil || n.due.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, n.due)
}

// tell tells what there is to tell, unless the lock is free by now.
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

// end leaves nothing on a terminal.
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

// waitingFor is one line.
func (s *lockState) waitingFor() string {
	parts := []string{"waiting for " + cli.Word(s.Path)}
	who, pid := "", fmt.Sprint(s.PID)
	switch {
	case s.Holder == pid:
		who = " by process " + pid
	case s.Holder != "" && s.PID != 0:
		who = " by " + cli.Text(s.Holder) + " (process " + pid + ")"
	case s.Holder != "":
		who = " by " + cli.Text(s.Holder)
	}
	if s.Host != "" {
		who += " on " + cli.Text(s.Host)
	}
	if s.Age != nil {
		who += " for " + (time.Duration(*s.Age) * time.Second).String()
	}
	parts[0] += ": held" + who
	if s.Reason != "" {
		parts = append(parts, cli.Text(s.Reason))
	}
	if s.Remedy != "" {
		parts = append(parts, "if it is nobody's: `"+s.Remedy+"`")
	}
	return strings.Join(parts, "; ")
}

// removable adds the command that ends a lock, whoever has it.
func removable(look lookup) lookup {
	return func() (lockState, any) {
		state, more := look()
		state.Remedy = admin.Removal(state.Path)
		return state, more
	}
}

// forcible adds the command that takes over a lock of tower which is stale, and to any other what ends it.
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
