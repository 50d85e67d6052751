package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
)

func TestTheOtherServersAreKeptForTheNextProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mount.servers")
	found, err := readServers(path)
	require.NoError(t, err)
	require.Empty(t, found, "nobody was heard yet")
	keeper := &otherServers{path: path, own: "10.0.0.1:7420", logger: slog.New(slog.DiscardHandler)}
	hears := func(servers ...string) { keeper.heard(&clusterpb.KeepAliveReply{Servers: servers}) }
	reads := func(want ...string) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			found, err := readServers(path)
			require.NoError(c, err)
			require.ElementsMatch(c, want, found)
		}, time.Minute, time.Millisecond)
	}
	hears("10.0.0.1:7420", "[fe80::1%eth0]:7420", "10.0.0.3:7420")
	reads("10.0.0.3:7420", "[fe80::1%eth0]:7420")
	hears()
	hears("10.0.0.1:7420")
	reads()
	for n := range 100 {
		hears("10.0.0.1:7420", fmt.Sprint("10.0.0.2:", n))
	}
	reads("10.0.0.2:99")
}
