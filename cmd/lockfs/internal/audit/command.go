// Package audit has the command for the history of locks: `lockfs audit verify` checks audit logs, and prints
// the evidence for its answer, or the contradictions.
package audit

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster/auditverify"
	"lockfs/cmd/lockfs/internal/cli"
)

// Commands returns all commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		cli.Parent(&cobra.Command{Use: "audit", Short: "Verify audit logs and the promises of locks"}, verifyCommand()),
	}
}

// dataDir is the data directory of a server of `lockfs up`.
const dataDir = "/var/lib/lockfs"

// Exit codes of `lockfs audit verify`.
const (
	exitContradicted = 2
	exitUncovered    = 3
)

func verifyCommand() *cobra.Command {
	var (
		question     auditverify.Question
		since, until string
		page         string
		asJSON       bool
	)
	cmd := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Verify audit logs, and show the holders of a lock over time",
		Long: `Verify that audit logs are complete and unchanged, and that locks kept their
promises. FILE is an audit.jsonl of a server (its rotated files are read too), or
a server's data directory. It can also be the output of lockfs events --json for
root, or - for standard input. The default is /var/lib/lockfs. Give the logs of
all servers: the command compares them, and fills the gaps of one from the
others. It needs no server and works on any host.

Each event contains the hash of the event before it. The chain shows changed,
removed, moved and repeated lines, and logs of another cluster. It cannot show
lines missing at the end of a log; the command reports which log goes on
longest.

--path shows the holders of one lock over time; the path counts from the root of
the mount. --since and --until take cluster time: 09:00 or 09:00:30 (today,
local time), 2026-01-02T15:04:05Z, or an age such as 10m. --html writes a page
with a timeline. --json prints all findings as one object.

The exit code is 0 if the logs cover the question and are sound, and 3 if they do
not cover it. It is 2 for a changed log or a contradiction, and 1 if a file cannot
be read.` + cli.More + `The command checks the events against the model of a lock: one holder at a time,
rising tokens, no removal by lockfs without staleness or force, evidence for
each expiry. For a contradiction it prints the smallest set of events that shows
it.`,
		Example: `  lockfs audit verify a/audit.jsonl b/audit.jsonl c/audit.jsonl
  lockfs audit verify --path deploy.lock --since 09:00 --until 10:00 --html deploy.html a.jsonl b.jsonl c.jsonl
  lockfs events --json | lockfs audit verify -`,
		Args: cli.Exactly(0, cli.AnyNumber),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			now := time.Now()
			if question.Since, err = parseTime("--since", since, now); err != nil {
				return err
			}
			if question.Until, err = parseTime("--until", until, now); err != nil {
				return err
			}
			if !question.Since.IsZero() && !question.Until.IsZero() && question.Until.Before(question.Since) {
				return errors.New("--until is before --since")
			}
			if question.Files = args; len(args) == 0 {
				question.Files = []string{dataDir}
			}
			question.Stdin = cmd.InOrStdin()
			answer, err := question.Ask()
			if err != nil {
				return err
			}
			if page != "" {
				if err := writePage(page, answer); err != nil {
					return err
				}
			}
			if asJSON {
				err = cli.PrintJSON(cmd.OutOrStdout(), struct {
					Proven bool `json:"proven"`
					*auditverify.Answer
				}{answer.Proven(), answer})
			} else {
				err = printAnswer(cmd.OutOrStdout(), answer)
			}
			if err != nil {
				return err
			}
			return verdict(answer)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&question.Path, "path", "", "list the holders of this lock, with times")
	flags.StringVar(&since, "since", "", "begin of the period")
	flags.StringVar(&until, "until", "", "end of the period")
	flags.StringVar(&page, "html", "", "write a page with a timeline to this file")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verdict returns the exit code for an answer.
func verdict(a *auditverify.Answer) error {
	switch {
	case !a.Sound():
		return cli.Exit(exitContradicted, nil)
	case !a.Proven():
		return cli.Exit(exitUncovered, nil)
	}
	return nil
}

// parseTime parses a time; an empty one is the zero time.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q: give a time such as 09:00 or 2026-01-02T15:04:05Z, or a duration such as 10m", flag, text)
}
