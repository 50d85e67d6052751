package doctor

import (
	"context"

	"golang.org/x/sys/unix"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
)

// serverOverhead is what a server needs besides the state.
const serverOverhead = 100 << 20

// lookAtMemory is for servers: a mount needs little.
func lookAtMemory(ctx context.Context, h *host) []Finding {
	memory := h.memory()
	if memory == 0 {
		return one(unknown("", "it is not known how much memory this process may use"))
	}
	status, err := h.cluster(ctx)
	if err != nil || status.Usage == nil {
		return one(unknown("", "%s may be used; no server said how much locks may need", cli.SizeText(memory)))
	}
	// The heap is up to twice the state while another one is received.
	needed := 2*status.Usage.MaxBytes + serverOverhead
	if needed > memory {
		return one(warning("lower --max-bytes, or do not run a server here", "locks may need %s (--max-bytes), for which a server takes up to %s; here are %s",
			cli.SizeText(status.Usage.MaxBytes), cli.SizeText(needed), cli.SizeText(memory)))
	}
	return one(ok("%s may be used, enough for the %s that locks may need (--max-bytes)", cli.SizeText(memory), cli.SizeText(status.Usage.MaxBytes)))
}

func readMemory() uint64 { return cluster.Memory() }

// enoughFiles is what a server with many mounts needs: a connection or two for each.
const enoughFiles = 4096

func lookAtOpenFiles(_ context.Context, h *host) []Finding {
	soft, hard, err := h.openFiles()
	switch {
	case err != nil:
		return one(unknown("", "the limit of open files is not known: %v", err))
	case hard < enoughFiles:
		return one(warning("raise it for the service: LimitNOFILE=65536 in its unit, or ulimit -Hn", "a process may have %d files open: a server needs one or two for each mount", hard))
	}
	return one(ok("a process may have %d files open, and raise that to %d", soft, hard))
}

func readOpenFiles() (soft, hard uint64, err error) {
	var limit unix.Rlimit
	err = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return limit.Cur, limit.Max, err
}
