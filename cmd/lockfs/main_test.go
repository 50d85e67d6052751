package main

import "lockfs/cmd/lockfs/internal/cli/clitest"

func init() { clitest.Main(main) }
