package setup

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockfs/cluster/atomicfile"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// UnitsCommand writes the units of lockfs up unless a package has installed them.
func UnitsCommand() *cobra.Command {
	program := ""
	cmd := &cobra.Command{
		Use:   "units DIR",
		Short: "Write the systemd units and their settings to a directory",
		Long: `Write the systemd units and their settings to a directory, which is created if it
is missing. This is for packages. lockfs up uses units in
` + packagedDir + ` if they start the same program, and otherwise writes
its own.`,
		Example: "  lockfs docs units --program /usr/bin/lockfs ./units",
		Args:    cli.Exactly(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for _, role := range []identity.Role{identity.Server, identity.Client} {
				if err := atomicfile.ReplaceForAll(filepath.Join(args[0], unitName(role)), []byte(unitText(role, program, defaultData))); err != nil {
					return err
				}
			}
			return atomicfile.Replace(filepath.Join(args[0], filepath.Base(settingsFile)), []byte(settingsHead))
		},
	}
	cmd.Flags().StringVar(&program, "program", "/usr/bin/lockfs", "path of the installed program")
	return cmd
}
