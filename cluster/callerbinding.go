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

// identityCheck ties what a host asks for to its certificate: its sessions are those of its name, and so are its commands. The leader
// does it, with a state that has all that was acknowledged.
type identityCheck struct {
	fsm        *raftstore.FSM
	openLimits *rateLimits // of sessions
}

func hasCertificate(caller rpc.Caller) bool {
	return caller.Role == rpc.RoleClient || caller.Role == rpc.RoleServer
}

// checkCommand makes a command its caller's. The error is a *rpc.RefusedError.
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
		cmd.Caller = new(storepb.Caller) // else nobody would judge it
	}
	if by := cmd.GetCaller(); by != nil {
		by.Host = caller.Host
		if squashed {
			squashRoot(by)
		}
	}
	return nil
}

// checkSession is an error unless a session is its caller's, or of nobody.
func (c *identityCheck) checkSession(caller rpc.Caller, id ids.Session) (squashed bool, err error) {
	if !hasCertificate(caller) {
		return false, nil
	}
	_, squashed, err = c.lookup(caller, id)
	return squashed, err
}

// lookup answers whose a session is; empty: nobody's that is known.
func (c *identityCheck) lookup(caller rpc.Caller, id ids.Session) (owner string, squashed bool, err error) {
	var shut error
	c.fsm.View(func(ns *namespace.Namespace) {
		owner = ns.SessionHost(id)
		role := storepb.Role_CLIENT
		if caller.Role == rpc.RoleServer {
			role = storepb.Role_SERVER
		}
		shut = ns.Admitted(caller.Host, role, caller.Key[:]) // the connection may be about to be ended
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

// squashRoot makes root nobody.
func squashRoot(by *storepb.Caller) {
	if by.GetUid() == 0 {
		by.Uid, by.Gid, by.Squashed = namespace.Nobody, namespace.Nobody, true
	}
}

// restrictViewer has a query be answered as its asker may see it: not as root of a host whose root is nobody.
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

// viewerOf answers nil for a query that has none.
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
