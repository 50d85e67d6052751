package mountpoint

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// mountEntry is a mount in this process's mount namespace.
type mountEntry struct {
	id     int
	parent int    // id of the mount below
	device uint32 // of the file system, as in st_dev
	point  string
	fsType string
	source string
	user   string // the mounting user of a FUSE mount
}

// readMounts returns the mounts, in no order (see [stackAt]). It touches none of them.
func readMounts() ([]mountEntry, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(text)), nil
}

// parseMounts parses /proc/self/mountinfo (proc_pid_mountinfo(5)).
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

// unescape decodes the octal escapes of /proc.
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

// mountedAt returns the top mount at a path without symbolic links; nil if there is none.
func mountedAt(path string) (top *mountEntry, err error) {
	stack, err := mountsAt(path)
	if err != nil || len(stack) == 0 {
		return nil, err
	}
	return &stack[len(stack)-1], nil
}

// All returns the directories with lockfs mounts visible to this process. It touches none of them.
func All() ([]string, error) {
	mounts, err := readMounts()
	return pointsFor(os.Geteuid(), mounts), err
}

// pointsFor omits mounts of users other than root: all users can mount a file system and call it lockfs.
func pointsFor(user int, mounts []mountEntry) (points []string) {
	for _, m := range mounts {
		if m.isOurs() && (m.user == "0" || m.user == strconv.Itoa(user)) && !slices.Contains(points, m.point) {
			points = append(points, m.point)
		}
	}
	return points
}

// isOurs reports whether a mount is of lockfs.
func (m *mountEntry) isOurs() bool { return m.fsType == "fuse."+FSType }

// stackAt returns the mounts at a path without symbolic links, the lowest first. The order of mountinfo is
// that of creation, and a mount put beneath another is newer.
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

// mountsAt is stackAt with the present mounts.
func mountsAt(path string) ([]mountEntry, error) {
	mounts, err := readMounts()
	return stackAt(mounts, path), err
}
