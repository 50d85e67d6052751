package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/worker"
	"lockfs/formats/tower"
)

// towerRequest is an intent's request for a lock.
type towerRequest struct {
	towerFlags
	auditor
	requestID, intent, intentVersion, actor string
	mode                                    string
	ttl                                     int64
	metadata                                []string
	force                                   bool
	wait                                    time.Duration
	notice                                  *notice
}

func (r *towerRequest) add(flags *pflag.FlagSet) {
	r.towerFlags.add(flags, true)
	r.auditor.add(flags)
	r.ttl = tower.DefaultTTL
	flags.StringVar(&r.intent, "intent", "", "name of the intent")
	flags.StringVar(&r.intentVersion, "intent-version", "", "version of the intent's definition")
	flags.StringVar(&r.actor, "actor", "", "actor of the request (default $ACTOR, else "+tower.DefaultActor+")")
	flags.StringVar(&r.mode, "mode", string(tower.Mutate), "observe, mutate or reconcile: observe takes no lock, and none blocks it")
	flags.Var(ttlFlag{&r.ttl}, "ttl", "time from the last heartbeat to stale; a plain number is seconds")
	flags.StringArrayVar(&r.metadata, "metadata", nil, "K=V: a field of the lock's metadata; repeat as needed")
	flags.BoolVar(&r.force, "force-lock", false, "steal the lock if it is stale; an active one is never stolen")
	flags.DurationVar(&r.wait, "wait", 0, "time limit of the wait for the lock")
}

func towerAcquireCommand() *cobra.Command {
	var request towerRequest
	answer := answer{outcome: outcomeAcquired}
	cmd := &cobra.Command{
		Use:   "acquire NAME --request-id ID --intent I",
		Short: "Acquire a lock",
		Long: `Acquire a lock, or print its holder as JSON: {"error": "lock_blocked", ...}, or
{"error": "lock_stale", ...} if the last heartbeat is older than the ttl. Then
--force-lock steals the lock. A file that is not a valid lock also blocks
({"error": "lock_invalid", ...}) and is not stolen. A request that already has
the lock is blocked too.` + cli.More + `The events are lock_acquired and, before it, lock_stolen. Without --audit-log
the command prints a warning, except on a mount of lockfs, which has its own
events. The directory is created with mode 700 if it is missing.

Renew the lock with lockfs tower heartbeat at least every third of the ttl, and
release it; lockfs tower run does both around a command. The pid in the lock is
the calling process.

` + waitHelp + `

` + jsonHelp + `
What the specification has in the answer to a request that is blocked stays as it is there, with those beside it.

` + cli.ExitHelp(cli.ExitBlocked, cli.ExitTimedOut),
		Example: `  lockfs tower acquire money-tracker-production --request-id req_abc123 --intent deploy-app --intent-version 1.2.0
  lockfs tower acquire nightly --request-id "$ID" --intent backup --intent-version 1 --wait 10m --ttl 30m --force-lock`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			mode, err := tower.ParseMode(request.mode)
			if err != nil {
				return fmt.Errorf("--mode: %w", err)
			}
			locks, warning := mode.Locks(args[0])
			switch {
			case mode == tower.Observe:
				answer.outcome = outcomeNotNeeded
				return answer.say(cmd, "No lock acquired: observe needs none\n")
			case !locks:
				return fmt.Errorf("NAME is empty: %s; to work without a lock, omit acquire", warning)
			}
			dir, name, err := request.openFor(args[0])
			if err != nil {
				return err
			}
			if request.requestID == "" {
				return errors.New("give a unique --request-id; release and heartbeat need the same")
			}
			answer.look = lookAtTower(dir, name)
			request.notice = newNotice(cmd, answer.asJSON, forcible(answer.look, cmd.CommandPath()))
			taken, err := request.acquire(cmd.Context(), cmd.ErrOrStderr(), dir, name, worker.CallerPID())
			if err != nil {
				return answerBlocked(&answer, cmd.OutOrStdout(), "  ", err)
			}
			if err := cli.Keep(cmd.Context()); err != nil {
				return errors.Join(err, giveBackTower(cmd.Context(), dir, name, &request))
			}
			return sayTaken(cmd, &answer, taken)
		}),
	}
	cmd.Flags().StringVar(&request.requestID, "request-id", "", "unique id of this execution (required)")
	answer.add(cmd.Flags())
	request.add(cmd.Flags())
	cli.Often(cmd.Flags(), "dir", "force-lock", "intent", "intent-version", "json", "request-id", "ttl", "wait")
	return cmd
}

func giveBackTower(ctx context.Context, dir tower.Dir, name string, request *towerRequest) error {
	outcome := towerOutcome{result: resultFailure}
	return notReleased(persistently(ctx, func(context.Context) error {
		return releaseTower(dir, name, request.requestID, &outcome, &request.auditor)
	}))
}

// acquire acquires the lock for the process pid, with the configured wait, and writes the events.
func (r *towerRequest) acquire(
	ctx context.Context, warn io.Writer, dir tower.Dir, name string, pid int,
) (*tower.Acquisition, error) {
	if err := r.checkTTL(); err != nil {
		return nil, err
	}
	lock, err := r.describe(name, pid)
	if err != nil {
		return nil, err
	}
	if r.wait < 0 {
		return nil, fmt.Errorf("--wait %v: it must not be negative", r.wait)
	}
	if err := r.check(warn); err != nil {
		return nil, err
	}
	if err := dir.Make(); err != nil {
		return nil, fmt.Errorf("the directory of the locks: %w; %s names it", err, TowerDirVariable)
	}
	if problem := dir.Exposed(); problem != "" {
		fmt.Fprintf(warn, "lockfs: warning: %s %s (section 12.1)\n", cli.Word(dir.Path), problem)
	}
	taken, err := r.take(ctx, dir, lock)
	if err != nil {
		return nil, err
	}
	r.none(taken.Token)
	r.emit(taken.Events()...)
	return taken, nil
}

// take acquires the lock. Its error distinguishes another holder from the end of the wait.
func (r *towerRequest) take(ctx context.Context, dir tower.Dir, lock *tower.Lock) (*tower.Acquisition, error) {
	var taken *tower.Acquisition
	err := r.notice.take(ctx, r.wait, func(ctx context.Context) (err error) {
		taken, err = dir.AcquireWait(ctx, lock, r.force)
		return err
	})
	if err == nil || !tower.Blocks(err) {
		return taken, err
	}
	return nil, notAcquired(ctx, r.wait, err)
}

func (r *towerRequest) checkTTL() error {
	if r.ttl < 2 {
		return errors.New("--ttl 1s: times in locks are whole seconds, so this one could be stale between two heartbeats; give 2s or more")
	}
	return nil
}

// describe returns the content of the lock. It names the calling process, because acquire itself ends at
// once.
func (r *towerRequest) describe(name string, pid int) (*tower.Lock, error) {
	for flag, value := range map[string]string{"intent": r.intent, "intent-version": r.intentVersion} {
		if value == "" {
			return nil, fmt.Errorf("give --%s: each lock records its intent", flag)
		}
	}
	lock, err := tower.New(name, r.requestID, r.intent, r.intentVersion, time.Now())
	if err != nil {
		return nil, err
	}
	if pid > 0 { // a parent outside of this pid namespace is 0
		lock.PID = pid
	}
	lock.TTLSeconds = r.ttl
	if actor := firstOf(r.actor, os.Getenv("ACTOR")); actor != "" {
		lock.Actor = actor
	}
	metadata, err := pairs("--metadata", r.metadata)
	if err != nil {
		return nil, err
	}
	for _, pair := range r.metadata {
		if !utf8.ValidString(pair) {
			return nil, fmt.Errorf("--metadata %s: it must be valid UTF-8", cli.Word(pair))
		}
	}
	if lock.Metadata, err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return lock, lock.Validate()
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// answerBlocked prints the response of section 4.4 or 6.3, if the error has one. With --json it leaves this
// to the answer.
func answerBlocked(a *answer, w io.Writer, indent string, err error) error {
	var response interface{ Response() any }
	if !errors.As(err, &response) {
		return err
	}
	if a.asJSON {
		a.more = response.Response()
		return err
	}
	show := cli.PrintJSON
	if indent == "" {
		show = cli.PrintJSONLine
	}
	if failed := show(w, response.Response()); failed != nil {
		return failed
	}
	return err
}

// stolen is in the answer after a lock was stolen.
type stolen struct {
	From string `json:"stolen_from"` // request id
}

func sayTaken(cmd *cobra.Command, a *answer, taken *tower.Acquisition) error {
	a.token = taken.Token
	from := ""
	if previous, err := tower.Parse(taken.Previous); err == nil {
		from = fmt.Sprintf(" (stolen from request %s)", cli.Word(previous.RequestID))
		a.more = stolen{previous.RequestID}
	}
	return a.say(cmd, "Lock acquired: %s%s\n", taken.Lock.LockName, from)
}
