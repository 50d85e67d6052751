// Package audit has the commands that check what happened to locks: `lockfs audit verify` reads audit logs and what `lockfs trace`
// has recorded, and says why they can be believed, or what in them cannot have been.
package audit

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster/verify"
	"lockfs/cmd/lockfs/internal/cli"
)

// Commands are all of them.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		cli.Parent(&cobra.Command{Use: "audit", Short: "Check audit logs: that they are whole, and that locks did what they promise"}, verifyCommand()),
		traceCommand(),
	}
}

// dataDir is where `lockfs up` has a server keep its data.
const dataDir = "/var/lib/lockfs"

// Exit codes of `lockfs audit verify`.
const (
	exitContradicted = 2
	exitUncovered    = 3
)

func verifyCommand() *cobra.Command {
	var (
		question     verify.Question
		since, until string
		page         string
		asJSON       bool
	)
	cmd := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Check audit logs of servers, and say who had a lock when",
		Long: `Check audit logs, and say whether they are whole and can have been. FILE is an audit.jsonl of a server, with which the
files rotated before it are read; a server's data directory; what lockfs events --json printed for root; what lockfs
trace recorded on a host; or - for standard input. Without any it is /var/lib/lockfs. Give the logs of all servers: what
is in several is compared, and what one lacks is taken from the others. Nothing is asked of the cluster, so logs can be
checked anywhere, and without any server.

Events are chained: each has the hash of the one before it, which all servers work out by themselves. So it is found
where a line was changed, removed, moved or repeated, and which log is of another cluster. The end of a log cannot vouch
for itself: where another log goes on further, it is said how far.

What the events tell is judged by the model of a lock: one holder at a time, tokens that rise, nothing removed by lockfs
that was not stale or forced, every expiry with its evidence; and so are calls that mounts recorded, kernel locks
(flock, fcntl) among them. What cannot have been is shown as the smallest piece that contradicts itself.

--path asks about one lock, as its path is below the mount, and says who had it when. --since and --until are times by
the cluster's clock: 09:00 or 09:00:30 (today, local time), 2026-01-02T15:04:05Z, or a duration such as 10m: so long ago. --html
writes a page with a timeline, which needs nothing else. --json prints all that was found as one object.

The exit code is 0 if all that was asked about is in the logs and sound, 1 if something cannot be read, 2 if a log is
not what was written or something cannot have been, and 3 if the logs do not have all that was asked about.`,
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
					*verify.Answer
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
	flags.StringVar(&question.Path, "path", "", "say who had this lock when")
	flags.StringVar(&since, "since", "", "only from this time on")
	flags.StringVar(&until, "until", "", "only up to this time")
	flags.StringVar(&page, "html", "", "write a page with a timeline to this file")
	flags.DurationVar(&question.Within, "timeout", time.Minute, "how long to look for an order of what overlaps")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verdict is the exit code of an answer.
func verdict(a *verify.Answer) error {
	switch {
	case !a.Sound():
		return cli.Exit(exitContradicted, nil)
	case !a.Proven():
		return cli.Exit(exitUncovered, nil)
	}
	return nil
}

// parseTime reads a time; an empty one is none.
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
	return time.Time{}, fmt.Errorf("%s %q: it is a time as in 09:00 or 2026-01-02T15:04:05Z, or a duration such as 10m", flag, text)
}
