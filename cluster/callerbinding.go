package cluster

import (
	"fmt"
	"slices"

	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// identityCheck ties requests to the certificate of the caller: a host acts in its own sessions and under
// its own name. The leader checks this with a state that has everything acknowledged.
type identityCheck struct {
	fsm        *raftstore.FSM
	openLimits *rateLimits // of sessions
}

func hasCertificate(caller rpc.Caller) bool {
	return caller.Role == rpc.RoleClient || caller.Role == rpc.RoleServer
}

// checkCommand checks the session of a command and sets its host. The error is a *rpc.RefusedError.
func (c *identityCheck) checkCommand(caller rpc.Caller, cmd *storepb.Command) error {
	if !hasCertificate(caller) {
		return nil
	}
	owner, squashed, err := c.lookup(caller, ids.Session(cmd.GetSession()))
	if err != nil {
		return err
	}
	if open := cmd.GetOp().GetOpenSession(); open != nil {
		if open.GetHost() != caller.Host {
			return otherHost(caller, open.GetHost())
		}
		if owner == "" && !c.openLimits.allow(caller.Host, readClocks().mono) {
			return refuse(storepb.Code_BUSY, fmt.Sprintf("%s opens too many sessions; the next one in a moment", caller.Host))
		}
	}
	if squashed && cmd.GetCaller() == nil {
		cmd.Caller = new(storepb.Caller) // without a caller there is no permission check
	}
	if by := cmd.GetCaller(); by != nil {
		by.Host = caller.Host
		if squashed {
			squashRoot(by)
		}
	}
	return nil
}

// checkSession returns an error if another host has the session.
func (c *identityCheck) checkSession(caller rpc.Caller, id ids.Session) (squashed bool, err error) {
	if !hasCertificate(caller) {
		return false, nil
	}
	_, squashed, err = c.lookup(caller, id)
	return squashed, err
}

// lookup returns the host of a session; empty: unknown session.
func (c *identityCheck) lookup(caller rpc.Caller, id ids.Session) (owner string, squashed bool, err error) {
	var shut error
	c.fsm.View(func(ns *namespace.Namespace) {
		owner = ns.SessionHost(id)
		role := storepb.Role_CLIENT
		if caller.Role == rpc.RoleServer {
			role = storepb.Role_SERVER
		}
		shut = ns.Admitted(caller.Host, role, caller.Key[:]) // the connection may be about to end
		squashed = ns.Admission(caller.Host).GetSquashRoot()
	})
	switch {
	case shut != nil:
		return "", false, refuse(storepb.Code_NOT_PERMITTED, fmt.Sprintf("%s: %v", caller.Host, shut))
	case owner != "" && owner != caller.Host:
		return "", false, otherHost(caller, owner)
	}
	return owner, squashed, nil
}

func otherHost(caller rpc.Caller, host string) error {
	return refuse(storepb.Code_NOT_PERMITTED, fmt.Sprintf("%s may not act for the host %q", caller, host))
}

// squashRoot turns root into uid 65534.
func squashRoot(by *storepb.Caller) {
	if by.GetUid() == 0 {
		by.Uid, by.Gid, by.Squashed = namespace.Nobody, namespace.Nobody, true
	}
}

// restrictViewer limits a query to the caller's view: root of a squashed host is an ordinary user.
func (c *identityCheck) restrictViewer(caller rpc.Caller, query *storepb.Query) {
	viewer := viewerOf(query)
	if viewer == nil || caller.Role != rpc.RoleClient || viewer.GetUid() != 0 {
		return
	}
	c.fsm.View(func(ns *namespace.Namespace) {
		if ns.Admission(caller.Host).GetSquashRoot() {
			viewer.Uid, viewer.Gid = namespace.Nobody, namespace.Nobody
			viewer.Groups = slices.DeleteFunc(viewer.GetGroups(), func(gid uint32) bool { return gid == 0 })
		}
	})
}

// viewerOf returns nil for a query without a viewer.
func viewerOf(query *storepb.Query) *storepb.Viewer {
	switch q := query.GetQuery().(type) {
	case *storepb.Query_ListLocks:
		return q.ListLocks.GetViewer()
	case *storepb.Query_PreviewRule:
		return q.PreviewRule.GetViewer()
	case *storepb.Query_ListAdvisoryLocks:
		return q.ListAdvisoryLocks.GetViewer()
	case *storepb.Query_ListEvents:
		return q.ListEvents.GetViewer()
	}
	return nil
}
