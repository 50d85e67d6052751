package cluster

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"time"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// reachTimeout limits the wait for an answer.
const reachTimeout = 2 * time.Second

// LoadTLS loads the certificates in the data directory of a stopped server, for connections to its
// members; nil: it has none.
func LoadTLS(dataDir string) (*rpc.Security, error) {
	credentials, err := identity.Load(filepath.Join(dataDir, consensus.CredentialsDir))
	if errors.Is(err, identity.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return certrenew.ForCommand(credentials), nil
}

// IsReachable reports whether a server answers at a member's address, and does not name another id.
// security is from LoadTLS, nil for an insecure cluster.
func IsReachable(ctx context.Context, member *storepb.Member, security *rpc.Security) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*reachTimeout)
	defer cancel()
	dialer := net.Dialer{Timeout: reachTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", member.GetAddress())
	if err != nil {
		return false
	}
	_ = conn.Close()
	peer := rpc.NewClient(member.GetAddress(), security)
	defer peer.Close()
	reply, err := peer.Probe(rpc.Unproven(ctx), &clusterpb.ProbeRequest{})
	return err != nil || reply.GetId() == member.GetId()
}
