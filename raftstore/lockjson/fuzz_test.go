package lockjson

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
	"lockfs/test/fuzzing"
)

// FuzzParseEventLine reads what anybody may hand to `lockfs audit verify`. What is taken for an event is written as it is read again.
func FuzzParseEventLine(f *testing.F) {
	f.Add(EventLine(&storepb.Event{Number: 7, Event: "lock_acquired", Time: 1, Path: []byte("a\xff"), By: &storepb.Caller{Host: "a", Pid: 3, Uid: 1}}))
	f.Add([]byte(`{"event":"x","timestamp":"2026-01-02T03:04:05.000000006Z","hash":"00ff","lock_path":"/a"}`))
	f.Add([]byte("{"))
	fuzzing.Run(f, func(t *testing.T, line []byte) {
		e, err := ParseEventLine(line)
		if err != nil {
			return
		}
		written := EventLine(e)
		again, err := ParseEventLine(written)
		require.NoError(t, err, "%s", written)
		require.Equal(t, string(written), string(EventLine(again)))
	})
}
