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

// unfit are kinds of file systems on which what was written may be gone.
var unfit = map[int64]struct{ name, why string }{
	unix.TMPFS_MAGIC:           {"tmpfs", "it is memory: all is gone after a restart, and acknowledged locks with it"},
	unix.RAMFS_MAGIC:           {"ramfs", "it is memory: all is gone after a restart, and acknowledged locks with it"},
	unix.NFS_SUPER_MAGIC:       {"NFS", "writes wait for another machine, and its failure takes this server along"},
	unix.OVERLAYFS_SUPER_MAGIC: {"overlay", "it is a container's own layer, which goes with the container: mount a volume there"},
	unix.FUSE_SUPER_MAGIC:      {"FUSE", "what fsync does there is for its process to say"},
	unix.SMB_SUPER_MAGIC:       {"SMB", "writes wait for another machine, and its failure takes this server along"},
	unix.CIFS_SUPER_MAGIC:      {"CIFS", "writes wait for another machine, and its failure takes this server along"},
	unix.SMB2_SUPER_MAGIC:      {"SMB", "writes wait for another machine, and its failure takes this server along"},
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
		return ok("%s is on a file system for disks (type %#x)", dir, uint64(stat.Type))
	})
}

// What has to be free, of all and in bytes: a data directory holds up to three states and the log.
const (
	littleShare = 5 // one part in so many
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
		const advice = "make room, or give the data directory a larger disk: a server without room stops"
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
