package cluster

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryShare is how much of a server's memory files may need, one part in so many: the heap is up to twice what is alive in
// it, and there may be two states while one is received.
const memoryShare = 4

// cgroupDir is where control groups (version 2) are found.
const cgroupDir = "/sys/fs/cgroup"

// Memory is how many bytes this process may use, 0 if nothing is known: what the machine has, or the least that a control group allows it.
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
		return 0 // nothing is known
	}
	return least
}

// groupMemory is the least that the groups of a process allow, as /proc/self/cgroup names them (cgroups(7)).
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
