package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/fusefs"
)

// Descriptors that a guard is started with.
const (
	guardAlive   = 3 // ends when the process of the mount has
	guardJournal = 4
	guardDevice  = 5
)

// startGuard starts a process that finishes the answers which this one may leave (see cluster.Guard).
func startGuard(client *cluster.Client, mounted *fusefs.Mounted) error {
	device := mounted.Device()
	defer func() { _ = device.Close() }()
	journal := client.SessionFile()
	if journal == nil {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	alive, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = alive.Close() }()
	guard := exec.Command(program, "guard")
	guard.Args[0] = "lockfs"
	guard.ExtraFiles = []*os.File{alive, journal, device}
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	if err := guard.Start(); err != nil {
		_ = end.Close()
		return fmt.Errorf("start the guard of the mount: %w", err)
	}
	go func() {
		_ = guard.Wait() // it ends before this process only if somebody kills it
		_ = end.Close()
	}()
	return nil
}

func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "guard",
		Short:  "Finish the answers that a mount's process left when it was killed; started by the mount itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			device := os.NewFile(guardDevice, "device")
			return cluster.Guard(os.NewFile(guardAlive, "alive"), os.NewFile(guardJournal, "journal"),
				func(answers [][]byte) { fusefs.Finish(device, answers) })
		},
	}
}
