package protocol

import (
	"errors"
	"time"

	"lockfs/cmd/lockfs/internal/cli"

	"github.com/spf13/cobra"
)

func beadsRunCommand() *cobra.Command {
	var (
		holder, version    string
		wait, grace, every time.Duration
		command            []string
	)
	answer := answer{outcome: outcomeAcquired}
	cmd := &cobra.Command{
		Use:   "run DIR --holder NAME [flags] [--] COMMAND [ARG...]",
		Short: "Run a command while holding the lock of a database",
		Long: `Acquire the lock of a database, run a command, and release the lock when the
command ends. Without --wait the command does not wait for the lock. The lock
names the process that runs the command, and ends with it.` + cli.More + lostHelp + `

` + waitHelp + `

` + runJSONHelp + `

` + cli.RunExitHelp(),
		Example: "  lockfs beads run .beads --holder ci-runner -- make issues",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := beadsDir(args[0])
			if err != nil {
				return err
			}
			lock, err := newBeadsLock(holder, version)
			if err == nil && every <= 0 {
				err = errors.New("--check-every must be more than 0")
			}
			if err == nil && wait < 0 {
				err = errors.New("--wait must not be negative")
			}
			if err != nil {
				return err
			}
			answer.look = lookAtBeads(dir)
			file := beadsFileLock(dir, lock, wait, every)
			file.notice = newNotice(cmd, answer.asJSON, removable(answer.look))
			return runUnder(cmd, &answer, file, command, grace)
		},
	}
	addBeadsHolder(cmd, &holder, &version)
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the lock")
	cmd.Flags().DurationVar(&every, "check-every", checkInterval,
		"interval of checks on file systems without change events")
	addGrace(cmd.Flags(), &grace)
	answer.add(cmd.Flags())
	pathAndCommand(cmd, &command)
	return cli.RunsCommand(cmd)
}
