package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// failed gives an error that has no exit code yet the one it has in the commands that use [exits].
func failed(err error) error {
	var exit *exitStatus
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case isLost(err):
		return &exitStatus{exitLost, err}
	}
	return &exitStatus{exitFailed, err}
}

// exits makes a command and what is wrong with its flags and arguments end with these codes.
func exits(cmd *cobra.Command) *cobra.Command {
	args, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		return failed(args(cmd, words))
	}
	cmd.RunE = func(cmd *cobra.Command, words []string) error { return failed(run(cmd, words)) }
	return cmd
}

// flagError is what is wrong with the flags of such a command.
func flagError(cmd *cobra.Command, err error) error {
	return failed(wrongFlag(cmd, err))
}
