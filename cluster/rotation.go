package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

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
	if n.security == nil || n.security.founding == nil {
		return
	}
	if err := n.recordFounding(authorities > 0); err != nil {
		n.logger.Error("the authority of the cluster is not recorded; this node tries again when it next leads", "error", err)
	}
}

func newClusterID() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return hex.EncodeToString(random[:])
}

func (n *Node) recordFounding(hasAuthority bool) error {
	authority := n.security.founding.authority
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
	err := n.mustPropose(&storepb.Op{Op: &storepb.Op_AdmitHost{AdmitHost: &storepb.AdmitHost{Founding: true, Host: &storepb.Admission{
		Name: n.dir.Name, Role: storepb.Role_SERVER, KeyHash: key[:], Certificate: leaf.Raw, Authority: fingerprint[:],
		NotAfter: leaf.NotAfter.UnixNano(),
	}}}})
	if err != nil {
		return err
	}
	if err := n.security.founding.over(); err != nil {
		return err
	}
	n.security.founding = nil
	return nil
}

// mustPropose proposes what the state has no reason to refuse.
func (n *Node) mustPropose(op *storepb.Op) error {
	result, err := n.changes.propose(n.ctx, op)
	if err == nil && result.GetCode() != storepb.Code_OK {
		err = fmt.Errorf("%v: %s", result.GetCode(), result.GetMessage())
	}
	return err
}

// rotation is the command that makes another authority the one that signs, which the one before vouches for.
func (e *enrollment) rotation() (*storepb.Op, error) {
	before, err := e.office.signing()
	if err != nil {
		return nil, err
	}
	next, err := identity.NewAuthority(time.Unix(0, e.clock.Now()))
	if err != nil {
		return nil, err
	}
	return e.office.add(next, before)
}

// dropUnneeded ends the trust in authorities of which no host has its certificate any more.
func (e *enrollment) dropUnneeded() {
	var unneeded [][]byte
	e.fsm.View(func(ns *namespace.Namespace) { unneeded = ns.UnneededAuthorities(e.clock.Now()) })
	for _, fingerprint := range unneeded {
		e.changes.proposeOwn(&storepb.Op{Op: &storepb.Op_DropAuthority{DropAuthority: &storepb.DropAuthority{Fingerprint: fingerprint}}})
	}
}
