package doctor

import (
	"context"

	"golang.org/x/sys/unix"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
)

// serverOverhead is the memory of a server besides the state.
const serverOverhead = 100 << 20

// lookAtMemory is for servers: a mount needs little memory.
func lookAtMemory(ctx context.Context, h *host) []Finding {
	memory := h.memory()
	status, err := h.cluster(ctx)
	switch {
	case h.onlyMounts() || err != nil || status.Usage == nil: // another check reports missing servers
		return nil
	case memory == 0:
		return one(unknown("", "the memory limit of this process is unknown"))
	}
	// The heap reaches twice the state while a snapshot arrives.
	needed := 2*status.Usage.MaxBytes + serverOverhead
	if needed > memory {
		return one(warning("lower --max-bytes, or do not run a server here", "the state may need %s (--max-bytes), and a server up to %s of memory; this host has %s",
			cli.SizeText(status.Usage.MaxBytes), cli.SizeText(needed), cli.SizeText(memory)))
	}
	return one(ok("%s available, enough for a state of %s (--max-bytes)", cli.SizeText(memory), cli.SizeText(status.Usage.MaxBytes)))
}

func readMemory() uint64 { return cluster.Memory() }

// enoughFiles is enough for a server with many mounts, which have one or two connections each.
const enoughFiles = 4096

func lookAtOpenFiles(_ context.Context, h *host) []Finding {
	soft, hard, err := h.openFiles()
	switch {
	case err != nil:
		return one(unknown("", "the limit of open files is unknown: %v", err))
	case hard < enoughFiles:
		return one(warning("raise it for the service: LimitNOFILE=65536 in its unit, or ulimit -Hn", "a process may have %d files open: a server needs one or two for each mount", hard))
	}
	return one(ok("a process may have %d files open, and raise the limit to %d", soft, hard))
}

func readOpenFiles() (soft, hard uint64, err error) {
	var limit unix.Rlimit
	err = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return limit.Cur, limit.Max, err
}
