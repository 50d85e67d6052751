package doctor

import (
	"context"
	"errors"
	"io/fs"

	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/fusefs/mountpoint"
)

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

// lookAtMountPoints reports whether programs can lock in the directory below a mount.
func lookAtMountPoints(_ context.Context, h *host) []Finding {
	points, err := h.configured()
	switch {
	case err != nil:
		return one(unknown("", "the configured mount points cannot be read: %v", err))
	case len(points) == 0:
		return one(ok("no mount point is configured here, by lockfs up or in /etc/fstab"))
	}
	var found []Finding
	for _, p := range points {
		bare, err := h.bare(p.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found = append(found, ok("%s is configured but missing: programs fail", p.Dir))
			continue
		case err != nil:
			found = append(found, unknown("run lockfs doctor as root", "the directory below %s cannot be read: %v", p.Dir, err))
			continue
		}
		if !bare.Mounted {
			found = append(found, warning("mount it: lockfs up, or mount "+p.Dir, "lockfs is not mounted at %s, but %s configures it", p.Dir, p.By))
		}
		found = append(found, judgeBare(p.Dir, bare))
	}
	return found
}

// judgeBare describes the bare directory without the mount.
func judgeBare(dir string, bare *mountpoint.Bare) Finding {
	const local = "put the mount point on a local file system with the immutable attribute (ext4, xfs, btrfs)"
	switch {
	case bare.Protection == mountpoint.Unprotected && !bare.Empty:
		return warning("move the files away while lockfs is not mounted, then mount again with lockfs up or mount",
			"%s: programs can lock in the directory below the mount, which has files in it", dir)
	case bare.Protection == mountpoint.Unprotected:
		return warning("run lockfs up, or mount it with mount -t lockfs; or do it yourself: chattr +i "+dir+" while lockfs is not mounted",
			"%s: programs can lock in the directory below the mount while lockfs is not mounted", dir)
	case bare.Protection == mountpoint.Covered && bare.Shared:
		return warning(local, "%s: %s, but other hosts with this file system can create files there, and so can this host before lockfs starts",
			dir, mountpoints.Describe(bare))
	case bare.Protection == mountpoint.Covered:
		return warning(local+", and give lockfs CAP_LINUX_IMMUTABLE", "%s: %s, but only from the first start of lockfs after a boot on",
			dir, mountpoints.Describe(bare))
	}
	return ok("%s: %s, so nothing can lock there while lockfs is not mounted", dir, mountpoints.Describe(bare))
}
