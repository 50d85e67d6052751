package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isGuarded reports whether a mount has a guard, from the command lines of processes: lockfs guard PID NUMBER
// DIR -- COMMAND. It ignores containers, which may have other mounts at the same path.
func isGuarded(dir string) bool {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	own, _ := os.Readlink("/proc/self/ns/mnt")
	return slices.ContainsFunc(processes, func(process string) bool {
		line, err := os.ReadFile(filepath.Join(process, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err != nil || len(words) < 5 || words[0] != "lockfs" || words[1] != "guard" || words[4] != dir {
			return false
		}
		seen, err := os.Readlink(filepath.Join(process, "ns/mnt"))
		return err == nil && seen == own
	})
}
