// Command overlay writes the sources with the changes of package mutants into a directory, and prints the
// flag for the go command:
//
//	go build $(go run ./test/mutants/overlay DIR) ./cmd/lockfs
//
// Run it at the root of the repository. Sets of patches may follow the directory; the default is "faults
// hooks".
package main

import (
	"fmt"
	"os"

	"lockfs/test/mutants"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: overlay DIR [SET ...]")
		os.Exit(2)
	}
	sets := os.Args[2:]
	if len(sets) == 0 {
		sets = []string{mutants.Faults, mutants.Hooks}
	}
	root, err := os.Getwd()
	if err == nil {
		var flag string
		if flag, err = mutants.Overlay(root, os.Args[1], sets...); err == nil {
			fmt.Println(flag)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "overlay:", err)
	os.Exit(1)
}
