package cluster

import (
	"time"

	"lockfs/cluster/identity"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

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
