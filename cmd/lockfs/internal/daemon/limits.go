package daemon

import (
	"github.com/spf13/pflag"

	"lockfs/fusefs"
)

// addLimits adds the flags for the budgets of a mount's users.
func addLimits(flags *pflag.FlagSet, limits *fusefs.Limits) {
	flags.Uint64Var(&limits.CallsPerUser, fusefs.CallsFlag, fusefs.DefaultCallsPerUser,
		"system calls of one user in progress on the mount at a time; more of them wait for these")
	flags.Uint64Var(&limits.WaitsPerUser, fusefs.WaitsFlag, fusefs.DefaultWaitsPerUser,
		"waits of one user for locks, and reads in .lockfs, at a time; then ENOLCK")
}
