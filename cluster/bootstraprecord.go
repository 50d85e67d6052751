package cluster

import (
	"fmt"

	"lockfs/cluster/identity"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// recordCluster records the cluster's id in the state, and at the beginning its CA and first server. It
// runs whenever this node begins to lead, and again after failures.
func (n *Node) recordCluster() {
	known := ""
	authorities := 0
	n.fsm.View(func(ns *namespace.Namespace) { known, authorities = ns.Cluster(), len(ns.Authorities()) })
	if known == "" {
		n.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_SetCluster{SetCluster: &storepb.SetCluster{Id: n.dir.ClusterID()}}})
	}
	if n.security == nil {
		return
	}
	begun := n.security.bootstrapCA.Load()
	if begun == nil {
		return
	}
	if err := n.recordBootstrapCA(begun.authority, authorities > 0); err != nil {
		n.logger.Error("the authority of the cluster is not recorded yet", "error", err)
		return
	}
	n.security.bootstrapCA.Store(nil)
	if err := begun.discard(); err != nil {
		n.logger.Warn("the file of the bootstrap is not removed", "file", begun.path, "error", err)
	}
}

func (n *Node) recordBootstrapCA(authority *identity.Authority, hasAuthority bool) error {
	if !hasAuthority {
		add, err := addAuthorityOp(authority, nil, n.security.seal, nil)
		if err == nil {
			err = n.mustPropose(add)
		}
		if err != nil {
			return err
		}
	}
	return n.mustPropose(admitFirstServer(authority, n.security.credentials))
}

// admitFirstServer returns the command that admits the first server.
func admitFirstServer(authority *identity.Authority, credentials *identity.Credentials) *storepb.Op {
	fingerprint, leaf, key := authority.Fingerprint(), credentials.Leaf(), credentials.Key().Hash()
	return &storepb.Op{Op: &storepb.Op_AdmitHost{AdmitHost: &storepb.AdmitHost{Founding: true, Host: &storepb.Admission{
		Name: credentials.Name().Host, Role: storepb.Role_SERVER, KeyHash: key[:], Certificate: leaf.Raw, Authority: fingerprint[:],
		NotAfter: leaf.NotAfter.UnixNano(),
	}}}}
}

// mustPropose proposes a command that the state has no reason to refuse.
func (n *Node) mustPropose(op *storepb.Op) error {
	result, err := n.proposer.propose(n.ctx, op)
	if err == nil && result.GetCode() != storepb.Code_OK {
		err = fmt.Errorf("%v: %s", result.GetCode(), result.GetMessage())
	}
	return err
}
