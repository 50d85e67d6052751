package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds (-ldflags "-X lockfs/cmd/lockfs/internal/cli.version=1.2.3").
var version = ""

// ProgramVersion returns the version of this program as far as the build has it.
func ProgramVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}

// ShowVersion adds --version to a program.
func ShowVersion(root *cobra.Command) {
	root.Version = ProgramVersion()
	root.SetVersionTemplate("lockfs {{.Version}}\n")
}

// VersionCommand returns lockfs version.
func VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  Exactly(0, 0),
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "lockfs", ProgramVersion())
		},
	}
}
