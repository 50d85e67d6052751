package control

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func TestWhatLives(t *testing.T) {
	process := &storepb.Process{Pid: 9, BootId: "boot"}
	const away = "until host h is back and its process is found to be gone, or `lockfs host forget h`; "
	for want, lock := range map[string]*storepb.Lock{
		"no more; it stays until a program removes it": {
			State: "stale", Facts: &storepb.Facts{Format: storepb.Format_TOWER, OnStale: storepb.OnStale_KEEP},
		},
		"no more; lockfs removes it": {
			State: "stale", Facts: &storepb.Facts{Format: storepb.Format_PID, Pid: 7, OnStale: storepb.OnStale_REMOVE},
		},
		"as long as process 7 on host h; then lockfs removes it": {
			State: "held", Facts: &storepb.Facts{Format: storepb.Format_PID, Pid: 7, Host: "h", OnStale: storepb.OnStale_REMOVE, Process: process},
		},
		away + "then it stays until a program removes it": {
			State: "unreachable", Facts: &storepb.Facts{Format: storepb.Format_BEADS, Pid: 7, Host: "h", OnStale: storepb.OnStale_KEEP, Process: process},
		},
	} {
		require.Equal(t, want, lockjson.Lives(lock, 0))
	}
	require.Equal(t, "anyone", lockjson.Remover(&storepb.Lock{State: "stale", Facts: &storepb.Facts{Guard: storepb.Guard_HOST}}))
	require.Equal(t, "its owner, by token, or anyone with `lockfs rm --force`",
		lockjson.Remover(&storepb.Lock{State: "held", Remover: "its owner, by token"}))
}
