package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"lockfs/cmd/lockfs/internal/cli"
)

// collect has all parts collected at the same time: they show one moment, as far as that is possible.
func (p *plan) collect(ctx context.Context, c *collection) {
	var parts sync.WaitGroup
	for name, args := range map[string][]string{
		"status.json":   {"status"},
		"members.json":  {"member", "list"},
		"sessions.json": {"session", "list"},
		"hosts.json":    {"host", "list"},
		"rules.json":    {"rule", "list"},
		"alarms.json":   {"alarm", "list"},
		"quotas.json":   {"quota", "list"},
		"doctor.json":   {"doctor"},
	} {
		parts.Go(func() { p.runSelf(ctx, c, name, args, func(text []byte) ([]byte, error) { return text, nil }) })
	}
	parts.Go(func() { p.runSelf(ctx, c, "events.jsonl", []string{"events"}, harmlessEvents) })
	parts.Go(func() { c.program() })
	parts.Go(func() { c.kernel() })
	parts.Go(func() { c.journal(ctx) })
	parts.Go(func() { p.daemons(ctx, c) })
	for _, dir := range p.data {
		parts.Go(func() { c.sizes("data"+strings.ReplaceAll(filepath.Clean(dir), "/", "-")+".txt", dir) })
	}
	parts.Wait()
}

// runSelf adds what another command prints with --json. One that says in its exit code what it found has printed it.
func (p *plan) runSelf(ctx context.Context, c *collection, name string, args []string, harmless func([]byte) ([]byte, error)) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	done := cli.RunSelf(ctx, append(append(args, "--json"), p.ask...)...)
	if len(done.Stdout) == 0 && done.Err != nil {
		c.lack(name, errors.New(string(append(bytes.TrimSpace(done.Stderr), " ("+done.Err.Error()+")"...))))
		return
	}
	text, err := harmless(done.Stdout)
	if err != nil {
		c.lack(name, err)
		return
	}
	c.text(name, text)
}

// program is the one that makes the bundle, which may be another one than the daemons run.
func (c *collection) program() {
	c.text("version.txt", []byte("lockfs "+cli.ProgramVersion()+"\n"))
	if info, ok := debug.ReadBuildInfo(); ok {
		c.text("build.txt", []byte(info.String()))
	}
}

// kernelFiles are read as they are.
var kernelFiles = []string{
	"/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory",
	"/proc/self/cgroup", "/proc/self/limits", "/proc/sys/fs/fuse/default_request_timeout", "/proc/sys/fs/fuse/max_request_timeout",
	"/proc/sys/fs/file-nr", "/etc/os-release", "/etc/fuse.conf",
}

// kernel describes the machine. Of its mounts only those of FUSE are told: options of others may have secrets in them.
func (c *collection) kernel() {
	var all bytes.Buffer
	for _, path := range kernelFiles {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // this kernel has none
		}
		if err != nil {
			c.lack("kernel.txt", err)
			continue
		}
		fmt.Fprintf(&all, "== %s\n%s\n", path, text)
	}
	c.text("kernel.txt", all.Bytes())
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		c.lack("mounts.txt", err)
		return
	}
	c.text("mounts.txt", []byte(fuseMounts(string(mounts))))
}

func fuseMounts(mountinfo string) string {
	var kept strings.Builder
	for line := range strings.Lines(mountinfo) {
		if _, kind, found := strings.Cut(line, " - "); found && strings.HasPrefix(kind, "fuse") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// journalLines is how much of the log is taken.
const journalLines = "5000"

func (c *collection) journal(ctx context.Context) {
	const name = "log.txt"
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	journal := exec.CommandContext(ctx, "journalctl", "--no-pager", "--quiet", "--output=short-iso-precise", "--lines="+journalLines,
		"_COMM=lockfs", "+", "SYSLOG_IDENTIFIER=lockfs")
	text, err := journal.Output()
	switch {
	case err != nil:
		c.lack(name, fmt.Errorf("journalctl: %w", err))
	case len(text) == 0:
		c.lack(name, errors.New("the journal has nothing of lockfs that this user may read; daemons may log elsewhere"))
	default:
		c.text(name, text)
	}
}
