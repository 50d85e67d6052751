package daemon

import (
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
)

func init() {
	clitest.Main(func() { cli.Main(program) })
}

// program is lockfs with the commands of this package only.
func program(string) cli.Program {
	return cli.Program{Root: cli.Root("lockfs", "", "", Commands()...), Name: "lockfs"}
}
