package cluster

import (
	"net"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// TestInsecureNodesSaySo has one with a plain port and one that nobody reaches.
func TestInsecureNodesSaySo(t *testing.T) {
	t.Parallel()
	health := func(node *Node) string {
		answer := httptest.NewRecorder()
		node.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/healthz", nil))
		return answer.Body.String()
	}
	alone := testConfig(t, "dev")
	alone.Address = ""
	for _, c := range []struct {
		node     *Node
		health   string
		insecure bool
	}{
		{startNode(t, testConfig(t, "n0")), "ok, insecure\n", true},
		{startNode(t, alone), "ok\n", false},
	} {
		require.Equal(t, c.health, health(c.node))
		require.Equal(t, c.insecure, ask(t, c.node, rpc.Node.Status, &clusterpb.StatusRequest{}).GetInsecure())
		require.Equal(t, oneIf(c.insecure), testutil.ToFloat64(c.node.cfg.Metrics.insecure))
	}
}

// TestTheAddressAtWhichANodeListensMayBeAnother has others reach it where it says.
func TestTheAddressAtWhichANodeListensMayBeAnother(t *testing.T) {
	t.Parallel()
	first := startNode(t, testConfig(t, "n0"))
	cfg := testConfig(t, "n1", first.cfg.Address)
	cfg.Advertise = cfg.Address
	_, port, err := net.SplitHostPort(cfg.Advertise)
	require.NoError(t, err)
	cfg.Address = "0.0.0.0:" + port
	second := startNode(t, cfg)
	require.Equal(t, cfg.Advertise, first.members.get(second.dir.ID).GetAddress())
	require.Len(t, first.raft.VoterIDs(), 2)

	cfg = testConfig(t, "n2", first.cfg.Address)
	cfg.Address = "0.0.0.0:7420"
	_, err = Open(cfg)
	require.ErrorContains(t, err, "--advertise")
}
