package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"log/syslog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cluster/session"
)

// JoinTokenVariable has the join token, which keeps it off the command line. LOCKFS_TOKEN is the fencing
// token of the lock under which a command runs.
const JoinTokenVariable = "LOCKFS_JOIN_TOKEN"

// variableOf returns the name of the environment variable for a flag.
func variableOf(flag string) string {
	if flag == "token" {
		return JoinTokenVariable
	}
	return "LOCKFS_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FlagsFromEnvironment sets flags from variables, such as --op-timeout from LOCKFS_OP_TIMEOUT. The command
// line takes precedence.
func FlagsFromEnvironment(cmd *cobra.Command) error {
	var failed error
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		variable := variableOf(flag.Name)
		value, set := os.LookupEnv(variable)
		if flag.Changed || !set || failed != nil {
			return
		}
		if err := cmd.Flags().Set(flag.Name, value); err != nil {
			failed = fmt.Errorf("variable %s=%q: %w", variable, value, WrongFlag(cmd, err))
		}
	})
	return failed
}

// DetachedVariable marks a process detached from the terminal.
const DetachedVariable = "LOCKFS_DETACHED"

// UnattendedVariable marks a daemon without restart after a crash.
const UnattendedVariable = "LOCKFS_UNATTENDED"

// SupervisedVariable marks a daemon with a supervisor such as systemd for the restart after a crash.
const SupervisedVariable = "LOCKFS_SUPERVISED"

// LogFlags are the flags for logs.
type LogFlags struct{ Format, Level string }

// Add adds the flags, with a default level.
func (f *LogFlags) Add(flags *pflag.FlagSet, level string) {
	flags.StringVar(&f.Format, "log-format", "text", "text or json")
	flags.StringVar(&f.Level, "log-level", level, "debug, info, warn or error")
}

// Logger returns a logger to standard error, or to the system log for a detached process.
func (f *LogFlags) Logger() (*slog.Logger, error) {
	options := new(slog.HandlerOptions)
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(f.Level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: give debug, info, warn or error", f.Level)
	}
	options.Level = level
	var out io.Writer = os.Stderr
	if os.Getenv(DetachedVariable) != "" {
		if system, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_INFO, "lockfs"); err == nil {
			out = system
		}
	}
	switch f.Format {
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: give text or json", f.Format)
}

// Default addresses of a server.
const (
	DefaultAddress     = "127.0.0.1:7420"
	DefaultHTTPAddress = "127.0.0.1:7422"

	DefaultForrstAddress  = "127.0.0.1:7423"
	ForrstPath            = "/forrst"
	DefaultForrstEndpoint = "http://" + DefaultForrstAddress + ForrstPath
)

// DefaultAddresses returns the default ports of a server on this host.
func DefaultAddresses() []string {
	return []string{DefaultAddress, DefaultHTTPAddress, DefaultForrstAddress}
}

// ClusterFlags are the connection flags of cluster commands. The default is the daemon of this
// host (see Find).
type ClusterFlags struct {
	Servers  []string
	Identity string
	Insecure bool
	Socket   string
	Timeout  time.Duration
	JSON     bool
}

// Add adds the flags, those of the connection with their annotation.
func (f *ClusterFlags) Add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Servers, "servers", nil, "ask these `SERVERS`, HOST:PORT,..., and no daemon here")
	flags.StringVar(&f.Identity, "identity", "", "`DIR` of the identity (default "+DefaultIdentity()+")")
	flags.BoolVar(&f.Insecure, "insecure", false, "the --servers run with --insecure")
	flags.StringVar(&f.Socket, "socket", "", "`SOCKET` of the daemon (default: in "+strings.Join(SocketDirs(), " or ")+")")
	flags.DurationVar(&f.Timeout, "timeout", 10*time.Second, "time limit for the cluster's answer")
	for _, name := range []string{"servers", "identity", "insecure", "socket", "timeout"} {
		flags.Lookup(name).Annotations = map[string][]string{connectionAnnotation: nil}
	}
	flags.BoolVar(&f.JSON, "json", false, "print JSON")
}

// AddOpTimeout adds --op-timeout.
func AddOpTimeout(flags *pflag.FlagSet, timeout *time.Duration) {
	flags.DurationVar(timeout, "op-timeout", session.DefaultOpTimeout,
		"time limit of a system call on the mount without a quorum; then it fails with ETIMEDOUT")
}

// OptionalDuration is a flag for a duration; its value is nil unless the flag is given.
func OptionalDuration(value **time.Duration) pflag.Value { return durationFlag{value} }

type durationFlag struct{ value **time.Duration }

func (f durationFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("must not be negative")
	}
	*f.value = &d
	return err
}

func (f durationFlag) String() string {
	if f.value == nil || *f.value == nil {
		return ""
	}
	return (*f.value).String()
}

func (durationFlag) Type() string { return "duration" }
