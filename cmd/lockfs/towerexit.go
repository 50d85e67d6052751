package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockfs/formats/tower"
)

// Exit codes of `lockfs tower check`: the first two are those of section 6.2.
const (
	exitStale = iota
	exitActive
	exitFree
	exitInvalid
)

const exitHelp = `Exit codes:
  0    done
  75   not acquired: somebody has the lock
  76   not acquired within --wait
  124  lost: the request does not have the lock, or no longer
  125  anything else, such as a wrong flag or a directory that cannot be written`

// failed gives an error that has no exit code yet the one it has in `lockfs tower` and `lockfs beads run`.
func failed(err error) error {
	var (
		exit *exitStatus
		lost *tower.LostError
	)
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case errors.As(err, &lost):
		return &exitStatus{exitLost, err}
	}
	return &exitStatus{exitFailed, err}
}

// exits makes a command and what is wrong with its flags and arguments end with these codes.
func exits(cmd *cobra.Command) *cobra.Command {
	args, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		err := args(cmd, words)
		if err != nil {
			err = fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
		}
		return failed(err)
	}
	cmd.RunE = func(cmd *cobra.Command, words []string) error { return failed(run(cmd, words)) }
	return cmd
}
