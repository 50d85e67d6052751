package mountpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mountEntry is a mount of this process's mount namespace.
type mountEntry struct {
	id     int
	device uint32 // of the file system, as st_dev has it
	point  string
	fsType string
	source string
	user   string // who made it, of a FUSE mount
}

// readMounts lists the mounts, those on top after those below. It touches none of them.
func readMounts() ([]mountEntry, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(text)), nil
}

// parseMounts reads the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
func parseMounts(mountinfo string) (mounts []mountEntry) {
	for line := range strings.Lines(mountinfo) {
		head, tail, _ := strings.Cut(line, " - ")
		fields, rest := strings.Fields(head), strings.Fields(tail)
		if len(fields) < 5 || len(rest) < 2 {
			continue
		}
		major, minor, _ := strings.Cut(fields[2], ":")
		id, errID := strconv.Atoi(fields[0])
		high, errHigh := strconv.ParseUint(major, 10, 12)
		low, errLow := strconv.ParseUint(minor, 10, 20)
		if errID != nil || errHigh != nil || errLow != nil {
			continue
		}
		m := mountEntry{
			id: id, device: uint32(high<<20 | low), point: unescape(fields[4]), fsType: rest[0], source: unescape(rest[1]),
		}
		for option := range strings.SplitSeq(rest[len(rest)-1], ",") {
			if user, found := strings.CutPrefix(option, "user_id="); found {
				m.user = user
			}
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape undoes the octal escapes that /proc writes for blanks and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// mountedAt answers the mount that is seen at a path without symbolic links; nil if there is none.
func mountedAt(path string) (top *mountEntry, err error) {
	mounts, err := readMounts()
	for i := range mounts {
		if mounts[i].point == path {
			top = &mounts[i]
		}
	}
	return top, err
}

// All answers the directories where lockfs is mounted, as this process sees them. It touches none of them.
func All() ([]string, error) {
	mounts, err := readMounts()
	return pointsFor(os.Geteuid(), mounts), err
}

// pointsFor leaves out what others than root have mounted: anybody can have a file system of his own, and call it lockfs.
func pointsFor(user int, mounts []mountEntry) (points []string) {
	for _, m := range mounts {
		if m.fsType == "fuse."+FSType && (m.user == "0" || m.user == strconv.Itoa(user)) {
			points = append(points, m.point)
		}
	}
	return points
}

// deviceOf answers the device of a mount without touching it, which its own process must not.
func deviceOf(dir string) (uint32, error) {
	m, err := mountedAt(dir)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, fmt.Errorf("%s is not among the mounts", dir)
	}
	return m.device, nil
}
