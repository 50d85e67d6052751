package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/tower"
)

// TowerDirVariable names the directory of tower's locks (tower section 4.1).
const TowerDirVariable = "TOWER_LOCK_DIR"

func towerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tower",
		Short: "Take, renew and release locks of tower-fleet, in any directory",
		Long: `Speak the tower-fleet lock protocol, version 1, in any directory: on a mount of lockfs or on a local disk. NAME.lock
in --dir is the lock NAME, a JSON file that its holder renews by heartbeats. It is stale when the last heartbeat is
longer ago than its ttl, and only then it can be stolen, with --force-lock.

In one directory of one host these commands exclude each other: nobody sees half a lock, and a lock that is renewed,
released or stolen is the one that was looked at. Only a mount of lockfs guarantees also

  - that this holds for all hosts
  - that scripts that use rm and mv on the same locks remove nothing but what they looked at
  - that nobody replaces a live lock of another host, however wrong its clock is: stale is what the cluster's clock says
  - a fencing token, larger for each new holder: ` + "`lockfs tower run`" + ` hands it to its command as LOCKFS_TOKEN

NAME has 1 to 128 of a-z, 0-9, - and _, and - and _ neither first nor last. It may contain ${params.x}, which stands
for the value of --param x=VALUE. A request id is anything unique, without line breaks and other control characters.`,
		Example: `  export TOWER_LOCK_DIR=/locks/tower
  lockfs tower run 'deploy-${params.app}' --param app=shop --intent deploy --intent-version 1.2.0 -- ./deploy.sh
  lockfs tower list`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(TowerEnvironment(cmd)) },
	}
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.Exits(cli.Parent(cmd, cli.Exits(towerAcquireCommand()), cli.Exits(towerReleaseCommand()), cli.Exits(towerHeartbeatCommand()),
		cli.Exits(towerCheckCommand()), cli.Exits(towerListCommand()), cli.Exits(towerRunCommand())))
}

// TowerEnvironment sets the flags of a tower command that the command line does not, from tower's own variables and lockfs's.
func TowerEnvironment(cmd *cobra.Command) error {
	if err := cli.FlagsFromEnvironment(cmd); err != nil {
		return err
	}
	flag := cmd.Flags().Lookup("dir")
	if value := os.Getenv(TowerDirVariable); flag != nil && !flag.Changed && value != "" {
		return cmd.Flags().Set("dir", value)
	}
	return nil
}

// towerFlags are what all commands have, and with params the name of a lock.
type towerFlags struct {
	dir    string
	params []string
}

func (f *towerFlags) add(flags *pflag.FlagSet, named bool) {
	flags.StringVar(&f.dir, "dir", tower.DefaultDir, "directory of the locks; also "+TowerDirVariable)
	if named {
		flags.StringArrayVar(&f.params, "param", nil, "K=V: what ${params.K} in NAME stands for; as often as needed")
	}
}

// open gives the directory. Paths in events and answers are absolute.
func (f *towerFlags) open() (tower.Dir, error) {
	if f.dir == "" {
		return tower.Dir{}, fmt.Errorf("--dir is empty: give a directory, or set %s", TowerDirVariable)
	}
	path, err := filepath.Abs(f.dir)
	return tower.Dir{Path: path, Now: time.Now}, err
}

// openFor gives the directory and the name of a lock in it.
func (f *towerFlags) openFor(template string) (tower.Dir, string, error) {
	dir, err := f.open()
	if err != nil {
		return dir, "", err
	}
	name, err := f.name(template)
	return dir, name, err
}

// name resolves an intent's controls.lock (section 2.1).
func (f *towerFlags) name(template string) (string, error) {
	params, err := pairs("--param", f.params)
	if err != nil {
		return "", err
	}
	name, err := tower.ResolveName(template, params)
	if err != nil {
		return "", fmt.Errorf("NAME %q: %w; see `lockfs tower --help`", template, err)
	}
	return name, nil
}

// pairs reads what was given as K=V.
func pairs(flag string, given []string) (map[string]string, error) {
	values := make(map[string]string, len(given))
	for _, pair := range given {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%s %q: write it as KEY=VALUE", flag, pair)
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("%s %s: it is given twice", flag, cli.Word(key))
		}
		values[key] = value
	}
	return values, nil
}

// towerFields are those of --json that other formats do not have.
type towerFields struct {
	LockName string          `json:"lock_name"`
	Warning  string          `json:"warning,omitempty"` // what is suspicious about a valid lock
	Lock     json.RawMessage `json:"lock,omitempty"`    // as the file has it
}

// lookAtTower answers what is known of a lock.
func lookAtTower(dir tower.Dir, name string) lookup {
	return func() (lockState, any) {
		state, fields := lookAt(dir.LockPath(name), formats.Tower, 0), towerFields{LockName: name}
		status, err := dir.Check(name)
		if err != nil {
			state.Reason = err.Error()
			return state, fields
		}
		if status.State == tower.Invalid && state.taken() { // it may be that of another name
			state.State, state.Reason = string(formats.Invalid), status.Problem
		}
		fields.Warning, fields.Lock = status.Warning, status.Content
		return state, fields
	}
}

// auditor writes events, if there is where to. What happened stays so if that fails.
type auditor struct {
	path    string
	warn    io.Writer
	offered bool // somebody could have said where to
}

func (a *auditor) add(flags *pflag.FlagSet) {
	a.offered = true
	flags.StringVar(&a.path, "audit-log", "", "append events to this file, a line of JSON each")
}

// check is called before anything is changed.
func (a *auditor) check(warn io.Writer) error {
	a.warn = warn
	if a.path == "" {
		return nil
	}
	if err := (tower.AuditLog{Path: a.path}).Check(); err != nil {
		return fmt.Errorf("--audit-log: %w", err)
	}
	return nil
}

// none says that nobody will be told of a lock, which has no token: a mount of lockfs keeps events of its own.
func (a *auditor) none(token uint64) {
	if a.offered && a.path == "" && token == 0 {
		fmt.Fprintln(a.warn, "lockfs: warning: there is no audit log, so no event says that the lock was taken or is released "+
			"(section 4.3); name one with --audit-log or LOCKFS_AUDIT_LOG")
	}
}

func (a *auditor) emit(events ...any) {
	for _, event := range events {
		if a.path == "" {
			return
		}
		if err := (tower.AuditLog{Path: a.path}).Append(event); err != nil {
			line, _ := json.Marshal(event)
			fmt.Fprintf(a.warn, "lockfs: the audit log could not be written: %v; the event was %s\n", err, line)
		}
	}
}

// ttlFlag is a time to live in seconds, as intents have it, or as a duration.
type ttlFlag struct{ seconds *int64 }

// Set is part of pflag.Value.
func (f ttlFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d < time.Second || d%time.Second != 0 {
		return errors.New("it is a number of seconds from 1 on, such as 1800, or a duration in whole seconds, such as 30m")
	}
	*f.seconds = int64(d / time.Second)
	return nil
}

// String is part of pflag.Value.
func (f ttlFlag) String() string {
	if f.seconds == nil {
		return ""
	}
	return (time.Duration(*f.seconds) * time.Second).String()
}

// Type is part of pflag.Value.
func (ttlFlag) Type() string { return "seconds" }
