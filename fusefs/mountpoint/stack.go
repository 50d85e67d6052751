package mountpoint

import "slices"

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
