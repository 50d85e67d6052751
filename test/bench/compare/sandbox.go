package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside is the first argument of the process in the namespaces.
const inside = "inside"

// sandboxed runs this program again as the first process of new namespaces. When it ends, the kernel ends all
// its child processes, mounts and networks.
func sandboxed(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS,
		Pdeathsig:  unix.SIGKILL,
		Setpgid:    true, // Ctrl-C reaches only the process that cleans up
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("the comparison: %w", err)
	}
	return nil
}

// addresses are those of the three hosts. GlusterFS refuses 127.0.0.1.
var addresses = [3]string{"10.77.0.1", "10.77.0.2", "10.77.0.3"}

// furnish sets up the namespaces.
func furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("run", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	commands := [][]string{{"ip", "link", "set", "lo", "up"}}
	for _, address := range addresses {
		commands = append(commands, []string{"ip", "address", "add", address + "/32", "dev", "lo"})
	}
	for _, command := range commands {
		if _, err := output(context.Background(), command...); err != nil {
			return err
		}
	}
	return nil
}
