package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Ran is what a program printed, and how it ended.
type Ran struct {
	Stdout, Stderr []byte
	Err            error // nil: with exit code 0
}

// RunSelf runs a command of this very program to its end, or until ctx ends.
func RunSelf(ctx context.Context, args ...string) *Ran {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = "lockfs"
	cmd.Env = os.Environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return &Ran{stdout.Bytes(), stderr.Bytes(), err}
}

// PassedOn are the flags of a command that were given, and not by a variable that has them too, for another command that has the same
// ones; without some.
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
