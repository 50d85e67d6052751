package mountpoint

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// mountEntry is a mount of this process's mount namespace.
type mountEntry struct {
	id     int
	parent int    // id of the mount that it is on
	device uint32 // of the file system, as st_dev has it
	point  string
	fsType string
	source string
	user   string // who made it, of a FUSE mount
}

// readMounts lists the mounts, in no order (see [stackAt]). It touches none of them.
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
		parent, errParent := strconv.Atoi(fields[1])
		high, errHigh := strconv.ParseUint(major, 10, 12)
		low, errLow := strconv.ParseUint(minor, 10, 20)
		if errID != nil || errParent != nil || errHigh != nil || errLow != nil {
			continue
		}
		m := mountEntry{
			id: id, parent: parent, device: uint32(high<<20 | low), point: unescape(fields[4]), fsType: rest[0], source: unescape(rest[1]),
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
	stack, err := mountsAt(path)
	if err != nil || len(stack) == 0 {
		return nil, err
	}
	return &stack[len(stack)-1], nil
}

// All answers the directories where lockfs is mounted, as this process sees them. It touches none of them.
func All() ([]string, error) {
	mounts, err := readMounts()
	return pointsFor(os.Geteuid(), mounts), err
}

// pointsFor leaves out what others than root have mounted: anybody can have a file system of his own, and call it lockfs.
func pointsFor(user int, mounts []mountEntry) (points []string) {
	for _, m := range mounts {
		if m.isOurs() && (m.user == "0" || m.user == strconv.Itoa(user)) && !slices.Contains(points, m.point) {
			points = append(points, m.point)
		}
	}
	return points
}

// isOurs reports whether a mount is one of lockfs.
func (m *mountEntry) isOurs() bool { return m.fsType == "fuse."+FSType }

// stackAt returns the mounts at a path without symbolic links, the lowest first. The order of mountinfo does not tell it: the kernel
// lists mounts by the time at which they were made, and one that was put beneath another is the newer one.
func stackAt(mounts []mountEntry, path string) (stack []mountEntry) {
	for _, m := range mounts {
		if m.point == path {
			stack = append(stack, m)
		}
	}
	depth := func(m mountEntry) (n int) {
		for m := &m; m != nil; n++ {
			at := slices.IndexFunc(stack, func(below mountEntry) bool { return below.id == m.parent })
			if at < 0 || n > len(stack) {
				return n
			}
			m = &stack[at]
		}
		return n
	}
	slices.SortStableFunc(stack, func(a, b mountEntry) int { return depth(a) - depth(b) })
	return stack
}

// mountsAt is stackAt of the mounts that there are now.
func mountsAt(path string) ([]mountEntry, error) {
	mounts, err := readMounts()
	return stackAt(mounts, path), err
}
