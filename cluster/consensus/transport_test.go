package consensus

import (
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestASnapshotOnItsWayEndsWithSilence has a follower be in the middle of one, when it can do nothing else.
func TestASnapshotOnItsWayEndsWithSilence(t *testing.T) {
	logger := quietLogger()
	silence := NewWithdrawal()
	open := func() raft.Transport {
		opened := newTransport(listen(t), &storage{space: newSpace("", 0, logger)}, silence, logger)
		t.Cleanup(func() { _ = opened.(raft.WithClose).Close() })
		return opened
	}
	leader, follower := open(), open()
	const size = 1 << 30
	sent := make(chan error, 1)
	go func() {
		request := &raft.InstallSnapshotRequest{Size: size}
		sent <- leader.InstallSnapshot("b", follower.LocalAddr(), request, new(raft.InstallSnapshotResponse), zeros{})
	}()
	rpc := <-follower.Consumer()
	_, err := io.ReadFull(rpc.Reader, make([]byte, 1<<20))
	require.NoError(t, err)
	silence.Begin()
	received, err := io.Copy(io.Discard, rpc.Reader)
	require.Less(t, received, int64(size-1<<20), err)
	rpc.Respond(new(raft.InstallSnapshotResponse), nil)
	require.ErrorIs(t, <-sent, errSilent)
}

// zeros are without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
