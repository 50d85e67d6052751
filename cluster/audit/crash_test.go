package audit

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// withFileLimit has writes beyond a file size fall short, as on a full disk.
func withFileLimit(t require.TestingT, size int64, do func()) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(size), Max: before.Max}))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }()
	do()
}

func TestFullDiskAtEveryByte(t *testing.T) {
	first, all := text(events(1)), text(events(1, 2, 3))
	for limit := range len(all) {
		cfg := testConfig(t)
		log := openLog(t, cfg)
		var err error
		if limit >= len(first) {
			require.NoError(t, log.Append(events(1)))
		}
		before := content(t, cfg.Path)
		withFileLimit(t, int64(limit), func() { err = log.Append(events(1, 2, 3)) })
		require.ErrorIs(t, err, syscall.EFBIG)
		require.Equal(t, before, content(t, cfg.Path))
		require.NoError(t, log.Append(events(1, 2, 3)))
		require.Equal(t, all, content(t, cfg.Path))
		require.NoError(t, log.Close())
	}
}

// node is one that appends its events, dies now and then, and tells them again.
type node struct {
	t      *rapid.T
	cfg    Config
	log    *Log
	events []Line
}

func TestEveryEventOnceInOrder(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		run, err := os.MkdirTemp(dir, "")
		require.NoError(t, err)
		n := &node{t: t, cfg: Config{
			Path: filepath.Join(run, "audit.jsonl"), MaxSize: rapid.Int64Range(1, 400).Draw(t, "size"),
			Keep: rapid.IntRange(1, 4).Draw(t, "keep"),
		}}
		n.log = openLog(t, n.cfg)
		t.Repeat(map[string]func(*rapid.T){
			"append":   func(*rapid.T) { n.emit(); n.tell(n.behind()) },
			"full":     func(*rapid.T) { n.emit(); n.fullDisk() },
			"restart":  func(*rapid.T) { require.NoError(t, n.log.Close()); n.start() },
			"crash":    func(*rapid.T) { die(t, n.log); n.tear(); n.start() },
			"rotating": func(*rapid.T) { die(t, n.log); n.rotateHalf(); n.start() },
			"":         func(*rapid.T) { n.check() },
		})
		require.NoError(t, n.log.Close())
	})
}

// emit has the state machine tell more events; where a snapshot was taken over, numbers are left out.
func (n *node) emit() {
	last := uint64(0)
	if len(n.events) > 0 {
		last = n.events[len(n.events)-1].Number
	}
	for range rapid.IntRange(0, 12).Draw(n.t, "events") {
		last += rapid.SampledFrom([]uint64{1, 1, 1, 1, 1, 1, 5}).Draw(n.t, "step")
		n.events = append(n.events, event(last))
	}
}

// behind is the first event that the log does not have.
func (n *node) behind() int {
	for i, event := range n.events {
		if event.Number > n.log.Last() {
			return i
		}
	}
	return len(n.events)
}

// tell starts from any event that the log has, or from the next.
func (n *node) tell(latest int) {
	rest := n.events[rapid.IntRange(0, latest).Draw(n.t, "from"):]
	for len(rest) > 0 {
		batch := rapid.IntRange(1, len(rest)).Draw(n.t, "batch")
		require.NoError(n.t, n.log.Append(rest[:batch]))
		rest = rest[batch:]
	}
}

func (n *node) start() {
	n.log = openLog(n.t, n.cfg)
	n.tell(n.behind())
}

func (n *node) fullDisk() {
	var err error
	limit := rapid.Int64Range(0, n.cfg.MaxSize).Draw(n.t, "limit")
	withFileLimit(n.t, limit, func() { err = n.log.Append(n.events) })
	require.Equal(n.t, err == nil, n.behind() == len(n.events))
	require.True(n.t, strings.HasSuffix(text(n.events[:n.behind()]), kept(n.t, n.cfg)), "a torn line is left")
	if rapid.Bool().Draw(n.t, "die") {
		die(n.t, n.log)
		n.start()
		return
	}
	n.tell(n.behind())
}

// tear takes any number of bytes from the end, all of which may not have reached the disk.
func (n *node) tear() {
	whole := content(n.t, n.cfg.Path)
	left := rapid.IntRange(0, len(whole)).Draw(n.t, "left")
	torn := whole[:left]
	if rapid.Bool().Draw(n.t, "NULs") {
		torn += strings.Repeat("\x00", len(whole)-left)
	}
	require.NoError(n.t, os.WriteFile(n.cfg.Path, []byte(torn), fileMode))
}

// rotateHalf dies between any two steps of a rotation.
func (n *node) rotateHalf() {
	if content(n.t, n.cfg.Path) == "" {
		return
	}
	free, err := n.log.freeName()
	require.NoError(n.t, err)
	stop := rapid.IntRange(0, free).Draw(n.t, "stop")
	for i := free; i > stop; i-- {
		require.NoError(n.t, os.Rename(n.log.name(i-1), n.log.name(i)))
	}
}

func (n *node) check() {
	all := kept(n.t, n.cfg)
	require.True(n.t, strings.HasSuffix(text(n.events), all), "%s\nis not how it ends:\n%s", all, text(n.events))
	if _, err := os.Stat(n.log.name(n.cfg.Keep)); err != nil {
		require.Equal(n.t, text(n.events), all, "none was to be removed")
	}
	if len(n.events) > 0 {
		require.Equal(n.t, n.events[len(n.events)-1].Number, n.log.Last())
	}
	for i := range n.cfg.Keep + 1 {
		one := content(n.t, n.log.name(i))
		require.True(n.t, int64(len(one)) <= n.cfg.MaxSize || strings.Count(one, "\n") == 1, "file %d has %d bytes", i, len(one))
	}
	files, err := os.ReadDir(filepath.Dir(n.cfg.Path))
	require.NoError(n.t, err)
	require.LessOrEqual(n.t, len(files), n.cfg.Keep+1)
}
