package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
)

// lockState is the state of a lock in --json, with the same names for each format.
type lockState struct {
	Outcome  string     `json:"outcome,omitempty"` // of the command; empty for queries
	State    string     `json:"state,omitempty"`   // free, held, stale, unreachable or invalid; empty: not known
	Format   string     `json:"format,omitempty"`
	Path     string     `json:"path,omitempty"`
	Holder   string     `json:"holder,omitempty"`
	Host     string     `json:"host,omitempty"`
	PID      int        `json:"pid,omitempty"`
	Acquired *time.Time `json:"acquired,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"`     // stale then, unless renewed; nil: not by time
	Age      *int64     `json:"age_seconds,omitempty"` // since it was acquired
	Token    uint64     `json:"token,omitempty"`       // on a mount of lockfs
	Reason   string     `json:"reason,omitempty"`      // of the state
	Remedy   string     `json:"remedy,omitempty"`      // command that would end the wait
	Message  string     `json:"message,omitempty"`     // text on standard error
}

// jsonHelp is part of the help of each command that prints a lockState.
const jsonHelp = `With --json the command prints the state of the lock on standard output,
whatever the outcome: outcome (of changes), state (free, held, stale,
unreachable, invalid), format, path, holder, host, pid, acquired, expires,
age_seconds, token, reason and message. Unknown fields are left out.`

// lookup reads the current state of a lock. The second result has the fields of its format only: nil or a
// struct.
type lookup func() (lockState, any)

// lookAt reads the state of the lock in a file. format is the expected one; 0 means any.
func lookAt(path string, format formats.Format, staleAfter time.Duration) lockState {
	status, err := formats.Check(path, formats.Rule{Format: format, StaleAfter: staleAfter})
	s := lockState{Format: format.String(), Path: path}
	if err != nil {
		s.Reason = err.Error()
		return s
	}
	s.State, s.Holder, s.Host, s.PID = string(status.State), status.Holder, status.Host, status.PID
	s.Token, s.Reason = status.Token, status.Reason
	if format == 0 && status.State != formats.Free {
		s.Format = status.Format.String()
	}
	s.since(status.Acquired)
	if !status.Expires.IsZero() {
		s.Expires = &status.Expires
	}
	return s
}

// since sets the time of acquisition, and the age in whole seconds. The age is never negative, even if this
// host's clock is behind.
func (s *lockState) since(acquired time.Time) {
	if acquired.IsZero() {
		return
	}
	age := int64(max(0, time.Since(acquired)) / time.Second)
	s.Acquired, s.Age = &acquired, &age
}

// taken reports whether the file is a lock of its format.
func (s *lockState) taken() bool {
	return s.State == string(formats.Held) || s.State == string(formats.Stale)
}

// answer is the result of a protocol command for --json.
type answer struct {
	asJSON  bool
	outcome string // of success; empty for queries
	look    lookup // nil: the lock is not known yet
	token   uint64 // of the acquired lock
	more    any    // fields from the specification; they take precedence
}

func (a *answer) add(flags *pflag.FlagSet) {
	flags.BoolVar(&a.asJSON, "json", false, "print the state of the lock as JSON")
}

// end prints the state of the lock and the outcome if --json is given. It returns err, or the error of the
// output.
func (a *answer) end(w io.Writer, err error) error {
	if !a.asJSON {
		return err
	}
	var state lockState
	var more any
	if a.look != nil {
		state, more = a.look()
	}
	if err == nil && a.outcome == outcomeAcquired && state.Token != a.token {
		// The next holder has replaced the lock already; its token would be wrong here.
		state = lockState{State: string(formats.Held), Format: state.Format, Path: state.Path, Token: a.token}
	}
	state.Outcome = a.outcome
	var exit *cli.ExitStatus
	err = cli.Failed(err)
	if silent := errors.As(err, &exit) && exit.Err == nil; exit != nil && (a.outcome != "" || !silent) {
		state.Outcome = cli.EndingOf(exit.Code).Outcome
		if !silent {
			state.Message = exit.Err.Error()
		}
	}
	if failed := printMerged(w, state, more, a.more); failed != nil {
		return failed
	}
	return err
}

// say prints a text, unless --json is given.
func (a *answer) say(cmd *cobra.Command, format string, values ...any) error {
	if a.asJSON {
		return nil
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format, values...)
	return err
}

// Outcomes of commands.
const (
	outcomeAcquired  = "acquired"
	outcomeReleased  = "released"
	outcomeRenewed   = "renewed"
	outcomeNotNeeded = "not_needed"
)

// tokenNumber parses a token; 0 means none.
func tokenNumber(token string) uint64 {
	number, _ := strconv.ParseUint(token, 10, 64)
	return number
}

// answering makes a command end with a.end.
func answering(a *answer, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.end(cmd.OutOrStdout(), run(cmd, args))
	}
}

// merged combines objects into one. The last object with a field wins.
func merged(objects ...any) (map[string]json.RawMessage, error) {
	fields := make(map[string]json.RawMessage)
	for _, object := range objects {
		if object == nil {
			continue
		}
		text, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(text, &fields)
		}
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func printMerged(w io.Writer, objects ...any) error {
	fields, err := merged(objects...)
	if err != nil {
		return err
	}
	return cli.PrintJSON(w, fields)
}

// removerHint ends messages about a missing lock.
const removerHint = ": on a lockfs mount, `lockfs events` names the process"

// removeHint says how to end a lock in the way. It names the file unless said does.
func removeHint(said, path string) string {
	file := cli.Word(path)
	if strings.Contains(said, path) {
		file = "it"
	}
	return "wait until it is released, or if its holder is gone remove " + file + " (on a lockfs mount with `lockfs rm --force`)"
}
