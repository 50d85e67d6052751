package doctor

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
)

func statfs(path string) (stat unix.Statfs_t, err error) {
	if err := unix.Statfs(path, &stat); err != nil {
		return stat, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return stat, nil
}

// unfit are file systems without durable writes.
var unfit = map[int64]struct{ name, why string }{
	unix.TMPFS_MAGIC:           {"tmpfs", "it is in memory: a restart deletes everything, with acknowledged locks"},
	unix.RAMFS_MAGIC:           {"ramfs", "it is in memory: a restart deletes everything, with acknowledged locks"},
	unix.NFS_SUPER_MAGIC:       {"NFS", "writes depend on another machine, whose failure stops this server"},
	unix.OVERLAYFS_SUPER_MAGIC: {"overlay", "it is the container's own layer, which is deleted with the container: mount a volume there"},
	unix.FUSE_SUPER_MAGIC:      {"FUSE", "its process decides the effect of fsync"},
	unix.SMB_SUPER_MAGIC:       {"SMB", "writes depend on another machine, whose failure stops this server"},
	unix.CIFS_SUPER_MAGIC:      {"CIFS", "writes depend on another machine, whose failure stops this server"},
	unix.SMB2_SUPER_MAGIC:      {"SMB", "writes depend on another machine, whose failure stops this server"},
}

func lookAtFileSystem(_ context.Context, h *host) []Finding {
	return h.eachData(func(dir string) Finding {
		stat, err := h.fileSystem(dir)
		if err != nil {
			return unknown("", "%v", err)
		}
		if kind, is := unfit[stat.Type]; is {
			return warning("put the data directory on a local disk (ext4, xfs)", "%s is on %s: %s", dir, kind.name, kind.why)
		}
		return ok("%s is on a local file system (type %#x)", dir, uint64(stat.Type))
	})
}

// Minimum of free space, as a share and in bytes: a data directory holds up to three states and the log.
const (
	littleShare = 5 // one part in littleShare
	leastShare  = 20
	littleBytes = 1 << 30
	leastBytes  = 128 << 20
)

func lookAtSpace(_ context.Context, h *host) []Finding {
	return h.eachData(func(dir string) Finding {
		stat, err := h.fileSystem(dir)
		if err != nil {
			return unknown("", "%v", err)
		}
		free, all := stat.Bavail*uint64(stat.Bsize), stat.Blocks*uint64(stat.Bsize)
		const advice = "free some space, or move the data directory to a larger disk: a server without space stops"
		switch {
		case free < leastBytes, free < all/leastShare:
			return failed(advice, "%s: %s of %s are free", dir, cli.SizeText(free), cli.SizeText(all))
		case stat.Files > 0 && stat.Ffree < stat.Files/leastShare:
			return failed(advice, "%s: %d of %d inodes are free", dir, stat.Ffree, stat.Files)
		case free < littleBytes, free < all/littleShare:
			return warning(advice, "%s: %s of %s are free", dir, cli.SizeText(free), cli.SizeText(all))
		case stat.Files > 0 && stat.Ffree < stat.Files/littleShare:
			return warning(advice, "%s: %d of %d inodes are free", dir, stat.Ffree, stat.Files)
		}
		return ok("%s: %s of %s are free", dir, cli.SizeText(free), cli.SizeText(all))
	})
}
