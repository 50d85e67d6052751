package admin

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// fakeMount has the files of a mount that tell of events: the ones that are kept, and a fifo for the new ones.
func fakeMount(t *testing.T, kept ...uint64) (root string, tell func(number uint64), end func()) {
	t.Helper()
	root = t.TempDir()
	control := filepath.Join(root, controlDir)
	require.NoError(t, os.Mkdir(control, 0o755))
	line := func(number uint64) []byte {
		return append(lockjson.EventLine(&storepb.Event{Number: number, Time: int64(number) * int64(time.Second)}), '\n')
	}
	var history []byte
	for _, number := range kept {
		history = append(history, line(number)...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(control, "history"), history, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(control, "status"), []byte("host=h\ncluster_time=2026-01-02T15:04:05.678901234Z\n"), 0o644))
	require.NoError(t, unix.Mkfifo(filepath.Join(control, "events"), 0o644))
	events, err := os.OpenFile(filepath.Join(control, "events"), os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = events.Close() })
	return root, func(number uint64) {
		_, err := events.Write(line(number))
		require.NoError(t, err)
	}, func() { require.NoError(t, events.Close()) }
}

var somebody = &storepb.Viewer{Uid: 5}

// TestReadEventsOfAMount: there are gaps where others' events were, and nothing is said of these.
func TestReadEventsOfAMount(t *testing.T) {
	for name, test := range map[string]struct {
		since since
		want  []uint64
	}{
		"all":         {since{}, []uint64{3, 4, 9}},
		"number":      {since{number: 4}, []uint64{4, 9}},
		"in a gap":    {since{number: 5}, []uint64{9}},
		"still to be": {since{number: 10}, nil},
		"time":        {since{time: time.Unix(4, 1)}, []uint64{9}},
	} {
		t.Run(name, func(t *testing.T) {
			root, _, _ := fakeMount(t, 3, 4, 9)
			reader := &eventReader{ask: (&mountEvents{root: root}).ask, from: test.since, viewer: somebody}
			numbers, notices, handle := collect(reader)
			require.NoError(t, reader.each(t.Context(), handle))
			require.Equal(t, test.want, *numbers)
			require.Empty(t, *notices)
		})
	}
	many := upTo(1, 2*eventLimit+7)
	root, _, _ := fakeMount(t, many...)
	reader := &eventReader{ask: (&mountEvents{root: root}).ask, viewer: somebody}
	numbers, _, handle := collect(reader)
	require.NoError(t, reader.each(t.Context(), handle))
	require.Equal(t, many, *numbers)
}

// TestFollowEventsOfAMount tells each event once, also one that happened while it was reading what is kept.
func TestFollowEventsOfAMount(t *testing.T) {
	root, tell, _ := fakeMount(t, 3, 4, 9)
	tell(9)
	tell(12)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader := &eventReader{ask: (&mountEvents{root: root}).ask, follow: true, viewer: somebody}
	numbers, notices, collected := collect(reader)
	require.NoError(t, reader.each(ctx, func(events []*storepb.Event) error {
		switch events[len(events)-1].GetNumber() {
		case 12:
			tell(20)
		case 20:
			stop()
		}
		return collected(events)
	}))
	require.Equal(t, []uint64{3, 4, 9, 12, 20}, *numbers)
	require.Empty(t, *notices)
}

// TestFollowEventsOfAMountThatEnds is no success: whoever follows is told that there will be no more.
func TestFollowEventsOfAMountThatEnds(t *testing.T) {
	root, _, end := fakeMount(t, 1)
	reader := &eventReader{ask: (&mountEvents{root: root}).ask, follow: true, viewer: somebody}
	require.ErrorIs(t, reader.each(t.Context(), func([]*storepb.Event) error {
		end()
		return nil
	}), io.EOF)
}

func TestClusterTimeOfAMount(t *testing.T) {
	root, _, _ := fakeMount(t)
	at, err := clusterTime(root)
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 1, 2, 15, 4, 5, 678_901_234, time.UTC), at)
}
