package fusefs

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/fusefs/control"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func eventsOf(dir string) string { return filepath.Join(dir, control.Name, "events") }

func readEvent(t testing.TB, lines *bufio.Reader) lockjson.Event {
	t.Helper()
	line, err := lines.ReadBytes('\n')
	require.NoError(t, err)
	var event lockjson.Event
	require.NoError(t, json.Unmarshal(line, &event), "%q", line)
	return event
}

// awaitEvents waits until there are so many events. Of a lock that was taken they tell up to a second late.
func (c *cluster) awaitEvents(t testing.TB, number uint64) {
	t.Helper()
	eventually(t, "events", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		return c.ns.LastEvent() >= number
	})
}

func TestEventsAreFollowed(t *testing.T) {
	c := newCluster()
	here, s := mountFor(t, c)
	there, _ := mountFor(t, c)
	require.NoError(t, os.Mkdir(filepath.Join(here, "before"), 0o755))
	c.awaitEvents(t, 1)

	var opened, waited atomic.Int32
	s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		switch q := query.GetListEvents(); {
		case q == nil:
		case q.GetLimit() == 1:
			opened.Add(1)
		case waited.Add(1)%2 == 0:
			return nil, true, context.DeadlineExceeded // no leader for a while
		}
		return nil, false, nil
	})
	// Go makes nonblocking what it opens if it can poll it. That must not end in waiting for good.
	inGo := bufio.NewReaderSize(openFile(t, eventsOf(here), os.O_RDONLY), 16)
	cat := exec.Command("cat", eventsOf(here))
	output, err := cat.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cat.Start())
	inCat := bufio.NewReader(output)
	eventually(t, "cat opens it", func() bool { return opened.Load() == 2 })

	for _, name := range []string{"first", "second"} {
		require.NoError(t, os.Mkdir(filepath.Join(there, name), 0o755))
		for _, reader := range []*bufio.Reader{inGo, inCat} {
			event := readEvent(t, reader)
			require.Equal(t, "lock_acquired", event.Event)
			require.Equal(t, name, event.LockPath)
		}
	}
	require.Greater(t, waited.Load(), int32(1))
	require.NoError(t, cat.Process.Signal(syscall.SIGTERM))
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cat.Wait()
	}()
	select {
	case <-exited:
	case <-time.After(5 * time.Second):
		require.Fail(t, "who waits for an event cannot be ended")
	}
}

func TestEventsInPieces(t *testing.T) {
	c := newCluster()
	dir, _ := mountFor(t, c)
	fd, err := syscall.Open(eventsOf(dir), syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer func() { _ = syscall.Close(fd) }()
	piece := make([]byte, 7)
	_, err = syscall.Read(fd, piece)
	require.ErrorIs(t, err, syscall.EAGAIN)
	_, err = syscall.Seek(fd, 0, 0)
	require.ErrorIs(t, err, syscall.ESPIPE)

	shell(t, dir, "mkdir one two")
	c.awaitEvents(t, 2)
	var text []byte
	for {
		n, err := syscall.Read(fd, piece)
		if err == syscall.EAGAIN {
			break
		}
		require.NoError(t, err)
		text = append(text, piece[:n]...)
	}
	lines := bufio.NewReader(strings.NewReader(string(text)))
	require.Equal(t, "one", readEvent(t, lines).LockPath)
	require.Equal(t, "two", readEvent(t, lines).LockPath)
	require.Zero(t, lines.Buffered())
}

func TestSignalInterruptsEvents(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	require.Equal(t, "interrupted\nthen", shell(t, dir, `exec python3 - <<'END'
import os, signal, json
fd = os.open(".lockfs/events", os.O_RDONLY)
def stop(*_): raise TimeoutError
signal.signal(signal.SIGALRM, stop)
try:
	signal.setitimer(signal.ITIMER_REAL, 0.3)
	os.read(fd, 1000)
except TimeoutError: print("interrupted")
os.mkdir("then")
print(json.loads(os.read(fd, 1000))["lock_name"])
END`))
}
