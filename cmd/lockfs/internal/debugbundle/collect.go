package debugbundle

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

// collect collects all parts concurrently, so they show about the same moment.
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

// runSelf adds the output of a command with --json. An exit code with a result is no error.
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

// program describes the program of the bundle; daemons may run another one.
func (c *collection) program() {
	c.text("version.txt", []byte("lockfs "+cli.ProgramVersion()+"\n"))
	if info, ok := debug.ReadBuildInfo(); ok {
		c.text("build.txt", []byte(info.String()))
	}
}

// kernelFiles are copied without changes.
var kernelFiles = []string{
	"/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory",
	"/proc/self/cgroup", "/proc/self/limits", "/proc/sys/fs/fuse/default_request_timeout", "/proc/sys/fs/fuse/max_request_timeout",
	"/proc/sys/fs/file-nr", "/etc/os-release", "/etc/fuse.conf",
}

// kernel describes the machine. It lists FUSE mounts only, because options of others may have secrets.
func (c *collection) kernel() {
	var all bytes.Buffer
	for _, path := range kernelFiles {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // this kernel has no such file
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

// journalLines is the number of copied log lines.
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
		c.lack(name, errors.New("the journal has no lockfs entries for this user: daemons may log elsewhere"))
	default:
		c.text(name, text)
	}
}
