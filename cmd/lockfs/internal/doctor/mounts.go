package doctor

import "context"

func lookAtMounts(ctx context.Context, h *host) []Finding {
	dirs, err := h.mounts()
	switch {
	case err != nil:
		return one(unknown("", "the mounts cannot be listed: %v", err))
	case len(dirs) == 0:
		return one(ok("lockfs is not mounted"))
	}
	var found []Finding
	for _, dir := range dirs {
		dead, err := h.mountState(dir)
		switch {
		case dead:
			found = append(found, failed("mount again, which cleans up, or unmount it: umount "+dir,
				"%s is dead (Transport endpoint is not connected): its process has ended", dir))
		case err != nil && h.hasNoQuorum(ctx):
		case err != nil:
			found = append(found, failed("check its process and the quorum of servers: lockfs status", "%s: %v", dir, err))
		default:
			found = append(found, ok("%s answers", dir))
		}
	}
	return found
}
