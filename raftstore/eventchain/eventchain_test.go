package eventchain

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func full() *storepb.Event {
	return &storepb.Event{
		Number: 7, Time: 1_700_000_000_000_000_001, Event: "lock_stolen", Path: []byte("d/lock"), Token: 52, Format: "tower", Holder: "r2", Host: "b",
		Pid: 3, By: &storepb.Caller{Host: "b", Pid: 99, Uid: 1000}, Reason: "why", PreviousHash: "sha256:00", Request: "req", Acquired: 6,
		Parent: 2, Index: 52, Cluster: "c", Before: []byte("before"), Previous: &storepb.Event{Token: 40, Format: "pid", Holder: "r1", Host: "a", Pid: 7},
	}
}

// TestHashesNeverChange: logs are kept for years, and programs of several versions have to agree.
func TestHashesNeverChange(t *testing.T) {
	require.Equal(t, "6f3e632814a78f9893368aebba167b55fc54584d83b10ab8d1c3326ba88ed516", hex.EncodeToString(Hash(full())))
	require.Equal(t, "77249d10c7017a7229f3ac23fc717e8778f553fc5c291b4c7dcf67d6ea022aa3", hex.EncodeToString(Hash(&storepb.Event{Number: 1, Event: "host_back", Time: 5, Host: "h"})))
}

// TestAllThatIsPrintedCounts has each field of an event in turn be another one.
func TestAllThatIsPrintedCounts(t *testing.T) {
	want, line := Hash(full()), string(lockjson.EventLine(full()))
	var each func(m protoreflect.Message, whole *storepb.Event)
	each = func(m protoreflect.Message, whole *storepb.Event) {
		m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if field.Kind() == protoreflect.MessageKind {
				each(m.Mutable(field).Message(), whole)
			}
			m.Clear(field)
			if string(lockjson.EventLine(whole)) != line {
				require.NotEqual(t, want, Hash(whole), "without %s", field.FullName())
			}
			m.Set(field, v)
			return true
		})
	}
	changed := full()
	each(changed.ProtoReflect(), changed)
	require.Equal(t, want, Hash(changed))
}

// TestHashIsOfWhatIsPrinted: of bytes that are no text only U+FFFD is known later.
func TestHashIsOfWhatIsPrinted(t *testing.T) {
	e := full()
	e.Path = []byte("a\xff\xfe\x1bz")
	printed, err := lockjson.ParseEventLine(lockjson.EventLine(e))
	require.NoError(t, err)
	require.False(t, proto.Equal(e, printed))
	require.Equal(t, Hash(e), Hash(printed))
}
