package main

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

// flagsFromEnvironment sets what the command line does not: --raft-addr from LOCKFS_RAFT_ADDR.
func flagsFromEnvironment(cmd *cobra.Command) error {
	var failed error
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		variable := "LOCKFS_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, set := os.LookupEnv(variable)
		if flag.Changed || !set || failed != nil {
			return
		}
		if err := cmd.Flags().Set(flag.Name, value); err != nil {
			failed = fmt.Errorf("variable %s=%q: %w", variable, value, wrongFlag(cmd, err))
		}
	})
	return failed
}

type logFlags struct{ format, level string }

func (f *logFlags) add(flags *pflag.FlagSet, level string) {
	flags.StringVar(&f.format, "log-format", "text", "text or json")
	flags.StringVar(&f.level, "log-level", level, "debug, info, warn or error")
}

// logger writes to standard error; a process that was detached writes to the system log, if there is one.
func (f *logFlags) logger() (*slog.Logger, error) {
	options := new(slog.HandlerOptions)
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: it is debug, info, warn or error", f.level)
	}
	options.Level = level
	var out io.Writer = os.Stderr
	if os.Getenv(detachedVariable) != "" {
		if system, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_INFO, "lockfs"); err == nil {
			out = system
		}
	}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: it is text or json", f.format)
}

const (
	defaultRaftAddress = "127.0.0.1:7420"
	defaultAPIAddress  = "127.0.0.1:7421"
	defaultHTTPAddress = "127.0.0.1:7422"
)

type clusterFlags struct {
	servers []string
	timeout time.Duration
	json    bool
}

func (f *clusterFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.servers, "servers", []string{defaultAPIAddress}, "API addresses of members, host:port, by comma")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long the cluster may take to answer")
	flags.BoolVar(&f.json, "json", false, "print JSON")
}

func addOpTimeout(flags *pflag.FlagSet, timeout *time.Duration) {
	flags.DurationVar(timeout, "op-timeout", session.DefaultOpTimeout,
		"how long a system call on the mount waits for a majority before it fails with ETIMEDOUT")
}

// durationFlag is a duration that may be left out.
type durationFlag struct{ value **time.Duration }

// Set is part of pflag.Value.
func (f durationFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("must not be negative")
	}
	*f.value = &d
	return err
}

// String is part of pflag.Value.
func (f durationFlag) String() string {
	if f.value == nil || *f.value == nil {
		return ""
	}
	return (*f.value).String()
}

// Type is part of pflag.Value.
func (durationFlag) Type() string { return "duration" }
