package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
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

// TowerDirVariable is the variable with the directory of tower's locks.
const TowerDirVariable = "TOWER_LOCK_DIR"

// TowerEnvironment sets flags of a tower command that are missing on the command line, from lockfs's
// variables and tower's.
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

// towerFlags are the flags of all tower commands. params is for commands with the name of a lock.
type towerFlags struct {
	dir    string
	params []string
}

func (f *towerFlags) add(flags *pflag.FlagSet, named bool) {
	flags.StringVar(&f.dir, "dir", tower.DefaultDir, "directory of the locks; also "+TowerDirVariable)
	if named {
		flags.StringArrayVar(&f.params, "param", nil, "K=V: value of ${params.K} in NAME; repeat as needed")
	}
}

// open returns the directory. Paths in events and answers are absolute.
func (f *towerFlags) open() (tower.Dir, error) {
	if f.dir == "" {
		return tower.Dir{}, fmt.Errorf("--dir is empty: give a directory, or set %s", TowerDirVariable)
	}
	path, err := filepath.Abs(f.dir)
	return tower.Dir{Path: path, Now: time.Now}, err
}

// openFor returns the directory, and the name of a lock in it.
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

// pairs parses arguments K=V.
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

// towerFields are the fields of --json for tower only.
type towerFields struct {
	LockName string          `json:"lock_name"`
	Warning  string          `json:"warning,omitempty"` // suspicious facts about a valid lock
	Lock     json.RawMessage `json:"lock,omitempty"`    // as in the file
}

// lookAtTower returns a lookup of a lock.
func lookAtTower(dir tower.Dir, name string) lookup {
	return func() (lockState, any) {
		state, fields := lookAt(dir.LockPath(name), formats.Tower, 0), towerFields{LockName: name}
		status, err := dir.Check(name)
		if err != nil {
			state.Reason = err.Error()
			return state, fields
		}
		if status.State == tower.Invalid && state.taken() { // the file may name another lock
			state.State, state.Reason = string(formats.Invalid), status.Problem
		}
		fields.Warning, fields.Lock = status.Warning, status.Content
		return state, fields
	}
}

// ttlFlag is a TTL: a number of seconds, as in intents, or a duration.
type ttlFlag struct{ seconds *int64 }

// Set implements pflag.Value.
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

// String implements pflag.Value.
func (f ttlFlag) String() string {
	if f.seconds == nil {
		return ""
	}
	return (time.Duration(*f.seconds) * time.Second).String()
}

// Type implements pflag.Value.
func (ttlFlag) Type() string { return "seconds" }
