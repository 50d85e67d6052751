package lockjson

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

func TestEventLinesCanBeReadBack(t *testing.T) {
	for _, e := range []*storepb.Event{
		{Number: 1, Event: "host_back", Time: 1_234_567_890_123_456_789, Host: "h"},
		{
			Number: 23456, Event: "lock_stolen", Time: 5, Path: []byte("a \x1b/b\u202e"), Token: 52, Format: "tower", Holder: "r\n2", Host: "b", Pid: 3,
			By: &storepb.Caller{Host: "b", Pid: 99, Uid: 1000}, Reason: "why", Request: "req", PreviousHash: "sha256:00",
			Index: 9, Parent: 7, Acquired: 4, Cluster: "c", Before: []byte{1, 2}, Hash: []byte{3, 4},
			Previous: &storepb.Event{Token: 40, Format: "tower", Holder: "r-1", Host: "a", Pid: 7},
		},
	} {
		got, err := ParseEventLine(EventLine(e))
		require.NoError(t, err)
		require.True(t, proto.Equal(e, got), "%v instead of %v", got, e)
	}
	_, err := ParseEventLine([]byte("x"))
	require.Error(t, err)
}
