package namespace

import (
	"errors"
	"fmt"
	"math"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// anewJump is how far numbers jump at least in a state that goes on anew: three years of ten thousand commands a second.
const anewJump = 1 << 40

// Anew is what a cluster is that goes on where another was lost.
type Anew struct {
	// Cluster is its id, drawn for it: servers of the lost cluster are told by theirs that they do not belong to this one.
	Cluster string
	// Survivor is the host that goes on with the key that it has; empty: none.
	Survivor string
	// ForgetHosts says that no key of the authority is left: all hosts come in anew.
	ForgetHosts bool
}

// BeginAnew makes of a state the first one of a cluster that is to go on where another was lost, whose last commands the state may
// not have. What that cluster has given out since must not be given out again, so indexes (and with them fencing tokens), inode
// and event numbers go on far above: by [anewJump], and above the microseconds since 1970, which no log catches up
// with, so that the same old state can be taken again. Session ids are drawn, and need no jump.
//
// Its sessions end, for they may rely on what is not known here any more: their flock and fcntl locks are kept from others for the
// lock delay, and hosts are silent until they mount again. It has no members and no join tokens, which may have been used up since. Hosts
// that were let in as servers are revoked, so that none comes back with what it has on its disk. Its events are a new chain, which says so. Alarms of states that differed are over. Nothing else is changed. now is the
// time on this host: the lock delay counts from then. The state is as if these had been commands, and its index is that of the last one.
//
// The error is that the numbers have no room for the jump, which is no state that ever was.
func (ns *Namespace) BeginAnew(now time.Time, anew Anew) error {
	above := func(last uint64) uint64 { return max(last+anewJump, uint64(now.UnixMicro())) }
	if most := max(uint64(ns.index), uint64(ns.tree.nextIno), ns.events.last); most > math.MaxInt64-2*anewJump {
		return fmt.Errorf("numbers up to %d leave no room for others", most)
	}
	if now.UnixMicro() < 0 {
		return errors.New("the clock of this host says that it is before 1970")
	}
	index := above(uint64(ns.index))
	ns.tree.nextIno, ns.events.last = ids.Inode(above(uint64(ns.tree.nextIno))), above(ns.events.last)
	do := func(op *storepb.Op) {
		index++
		ns.Apply(ids.Index(index), &storepb.Command{Time: now.UnixNano(), Op: op})
	}
	index++
	ns.index, ns.time = ids.Index(index), max(ns.time, now.UnixNano())
	ns.emitAnew(anew.Cluster)
	for _, s := range ns.sessions.liveSessions() {
		do(&storepb.Op{Op: &storepb.Op_EndSession{EndSession: &storepb.EndSession{Id: s.GetId(), IfActive: s.GetActive()}}})
	}
	for _, m := range ns.Members() {
		do(&storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: m.GetId()}}})
	}
	for _, alarm := range ns.Alarms() { // of voters that it has not; a survivor that was out of service is so no more: nobody else is left
		if alarm.GetKind() == AlarmStateDiffers || alarm.GetKind() == AlarmStateUndecided {
			do(&storepb.Op{Op: &storepb.Op_ClearAlarm{ClearAlarm: &storepb.ClearAlarm{Number: alarm.GetNumber()}}})
		}
	}
	for _, host := range ns.servers() {
		if host != anew.Survivor && !anew.ForgetHosts {
			do(&storepb.Op{Op: &storepb.Op_RevokeHost{RevokeHost: &storepb.RevokeHost{Name: host}}})
		}
	}
	ns.trust.BeginAnew(anew.Cluster, anew.ForgetHosts)
	do(&storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}) // there is one command at least
	return nil
}

// servers are the names of the hosts that are let in as servers.
func (ns *Namespace) servers() (names []string) {
	ns.EachAdmission(func(host *storepb.Admission) bool {
		if host.GetRole() == storepb.Role_SERVER && host.GetRevoked() == 0 {
			names = append(names, host.GetName())
		}
		return true
	})
	return names
}
