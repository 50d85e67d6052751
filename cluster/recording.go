package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"lockfs/cluster/identity"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// recordCluster has the state know which cluster it is, and what one begins with: its authority, and the first server. It is done each
// time that this node begins to lead, so that what was cut off is done then.
func (n *Node) recordCluster() {
	known := ""
	authorities := 0
	n.fsm.View(func(ns *namespace.Namespace) { known, authorities = ns.Cluster(), len(ns.Authorities()) })
	if known == "" {
		n.changes.proposeOwn(&storepb.Op{Op: &storepb.Op_SetCluster{SetCluster: &storepb.SetCluster{Id: newClusterID()}}})
	}
	if n.security == nil {
		return
	}
	begun := n.security.founding.Load()
	if begun == nil {
		return
	}
	if err := n.recordFounding(begun.authority, authorities > 0); err != nil {
		n.logger.Error("the authority of the cluster is not recorded; this node tries again when it next leads", "error", err)
		return
	}
	n.security.founding.Store(nil)
	if err := begun.over(); err != nil {
		n.logger.Warn("what the cluster began with is still there", "file", begun.path, "error", err)
	}
}

func newClusterID() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return hex.EncodeToString(random[:])
}

func (n *Node) recordFounding(authority *identity.Authority, hasAuthority bool) error {
	if !hasAuthority {
		add, err := n.enrollment.office.add(authority, nil)
		if err == nil {
			err = n.mustPropose(add)
		}
		if err != nil {
			return err
		}
	}
	fingerprint, leaf, key := authority.Fingerprint(), n.security.credentials.Leaf(), n.security.credentials.Key().Hash()
	return n.mustPropose(&storepb.Op{Op: &storepb.Op_AdmitHost{AdmitHost: &storepb.AdmitHost{Founding: true, Host: &storepb.Admission{
		Name: n.dir.Name, Role: storepb.Role_SERVER, KeyHash: key[:], Certificate: leaf.Raw, Authority: fingerprint[:],
		NotAfter: leaf.NotAfter.UnixNano(),
	}}}})
}

// mustPropose proposes what the state has no reason to refuse.
func (n *Node) mustPropose(op *storepb.Op) error {
	result, err := n.changes.propose(n.ctx, op)
	if err == nil && result.GetCode() != storepb.Code_OK {
		err = fmt.Errorf("%v: %s", result.GetCode(), result.GetMessage())
	}
	return err
}
