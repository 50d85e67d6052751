package cluster

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryShare is the part of a server's memory for files: one in so many. The heap is up to twice the
// live data, and during a restore there may be two states.
const memoryShare = 4

// cgroupDir has the control groups (version 2).
const cgroupDir = "/sys/fs/cgroup"

// Memory returns how many bytes this process may use: the machine's memory, or the lowest limit of its
// control groups; 0: unknown.
func Memory() uint64 {
	least := uint64(math.MaxUint64)
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		least = info.Totalram * uint64(info.Unit)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err == nil {
		least = min(least, groupMemory(cgroupDir, string(groups)))
	}
	if least == math.MaxUint64 {
		return 0 // unknown
	}
	return least
}

// groupMemory returns the lowest limit of a process's groups, as named in /proc/self/cgroup (cgroups(7)).
func groupMemory(dir, groups string) uint64 {
	least := uint64(math.MaxUint64)
	for line := range strings.Lines(groups) {
		path, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !found {
			continue
		}
		for group := filepath.Join("/", path); ; group = filepath.Dir(group) {
			content, err := os.ReadFile(filepath.Join(dir, group, "memory.max"))
			if limit, wrong := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64); err == nil && wrong == nil {
				least = min(least, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}
