package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/raftstore/storepb"
)

// Self identifies this process for permission checks. A daemon checks the identity by its socket; servers
// trust their hosts.
func Self() *storepb.Viewer {
	viewer := &storepb.Viewer{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	groups, err := os.Getgroups()
	viewer.MoreGroups = err != nil
	for _, group := range groups {
		viewer.Groups = append(viewer.Groups, uint32(group))
	}
	return viewer
}

// HostName returns the name of this host in sessions and lock files.
func HostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this host: %w", err)
	}
	return name, nil
}

// Ran is the output and result of a command.
type Ran struct {
	Stdout, Stderr []byte
	Err            error // nil: exit code 0
}

// RunSelf runs a command of this program until it ends or ctx ends.
func RunSelf(ctx context.Context, args ...string) *Ran {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = "lockfs"
	cmd.Env = os.Environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return &Ran{stdout.Bytes(), stderr.Bytes(), err}
}

// PassedOn returns the flags from the command line of cmd for another command with the same flags. Flags from
// variables and those in without are left out.
func PassedOn(cmd *cobra.Command, without ...string) (args []string) {
	left := map[string]bool{}
	for _, name := range without {
		left[name] = true
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if left[flag.Name] {
			return
		}
		if list, is := flag.Value.(pflag.SliceValue); is {
			for _, value := range list.GetSlice() {
				args = append(args, "--"+flag.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+flag.Name+"="+flag.Value.String())
	})
	return args
}
