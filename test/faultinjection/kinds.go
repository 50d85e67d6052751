package faultinjection

// A role selects the target of a strike.
type role int

const (
	leader role = iota
	follower
	guest
)

// A part is the part of a host that a strike uses exclusively.
type part uint

const (
	process part = 1 << iota
	network
	disk
	wallClock
	membership // of the whole cluster
)

// A kind is a kind of fault. Its duration is between two multiples of the session TTL.
type kind struct {
	name     string
	role     role
	parts    part
	from, to float64
	begin    func(*Site, *target, Strike) (end func())
}

// kinds are all kinds. A soak prints their names.
var kinds = []kind{
	{"leader killed", leader, process, 0.2, 1.5, killed},
	{"follower killed", follower, process, 0.2, 2, killed},
	{"guest killed", guest, process, 0, 1.2, killed},
	{"leader stopped", leader, process, 0.2, 1, stopped},
	{"follower stopped", follower, process, 0.2, 1, stopped},
	{"guest stopped", guest, process, 0.5, 1, stopped},
	{"leader frozen", leader, process, 0.2, 1.8, frozen},
	{"follower frozen", follower, process, 0.2, 1.8, frozen},
	{"guest frozen", guest, process, 0.2, 1.8, frozen},
	{"follower's host frozen", follower, process | disk | network, 0.2, 1.8, hostFrozen},
	{"guest's host frozen", guest, process | network, 0.2, 1.8, hostFrozen},
	{"leader upgraded", leader, process, 0.2, 0.5, upgraded},
	{"follower upgraded", follower, process, 0.2, 0.5, upgraded},
	{"guest upgraded", guest, process, 0.2, 0.5, upgraded},
	{"guest's mount is away", guest, process, 0.5, 2, mountAway},
	{"guest upgraded and killed", guest, process, 0.02, 0.3, upgradedAndKilled},
	{"leader upgraded to the next version", leader, process, 0.2, 0.5, toNextVersion},
	{"follower upgraded to the next version", follower, process, 0.2, 0.5, toNextVersion},
	{"guest upgraded to the next version", guest, process, 0.2, 0.5, toNextVersion},
	{"leader short of memory", leader, process, 0.5, 2, shortOfMemory},
	{"follower short of memory", follower, process, 0.5, 2, shortOfMemory},

	{"leader cut off", leader, network, 0.3, 2, cutOff},
	{"follower cut off", follower, network, 0.3, 2, cutOff},
	{"guest cut off", guest, network, 0.3, 2, cutOff},
	{"leader hears nobody", leader, network, 0.3, 2, hearsNobody},
	{"leader is not heard", leader, network, 0.3, 2, isNotHeard},
	{"follower hears nobody", follower, network, 0.3, 2, hearsNobody},
	{"follower is not heard", follower, network, 0.3, 2, isNotHeard},
	{"guest hears nobody", guest, network, 0.3, 2, hearsNobody},
	{"guest is not heard", guest, network, 0.3, 2, isNotHeard},
	{"leader and a guest on an island", guest, network, 0.5, 2, onAnIsland},
	{"guest cut from the leader only", guest, network, 0.5, 3, cutFromLeader},
	{"follower cut from the leader only", follower, network, 0.5, 3, cutFromLeader},
	{"guest cut from a follower only", guest, network, 0.5, 2, cutFromFollower},
	{"follower cut from another one only", follower, network, 0.5, 2, cutFromFollower},
	{"leader's link flaps", leader, network, 1, 2, flapping},
	{"follower's link flaps", follower, network, 1, 2, flapping},
	{"guest's link flaps", guest, network, 1, 2, flapping},
	{"leader's link is slow", leader, network, 0.5, 2, slowLink},
	{"follower's link is slow", follower, network, 0.5, 2, slowLink},
	{"guest's link is slow", guest, network, 0.5, 2, slowLink},
	{"leader's link loses", leader, network, 0.5, 2, losing},
	{"follower's link loses", follower, network, 0.5, 2, losing},
	{"guest's link loses", guest, network, 0.5, 2, losing},

	{"leader's disk is slow", leader, disk, 0.5, 2, slowDisk},
	{"follower's disk is slow", follower, disk, 0.5, 2, slowDisk},
	{"leader's disk fails", leader, disk, 0.1, 1, failingDisk},
	{"follower's disk fails", follower, disk, 0.1, 1, failingDisk},
	{"leader's disk hangs", leader, disk | process, 0.3, 2, hangingDisk},
	{"follower's disk hangs", follower, disk | process, 0.3, 2, hangingDisk},
	{"leader's disk is full", leader, disk, 0.5, 2, fullDisk},
	{"follower's disk is full", follower, disk, 0.5, 2, fullDisk},

	{"leader's clock jumps", leader, wallClock, 0.2, 2, clockJumps},
	{"follower's clock jumps", follower, wallClock, 0.2, 2, clockJumps},
	{"guest's clock jumps", guest, wallClock, 0.2, 2, clockJumps},
	{"leader's clock drifts", leader, wallClock, 1, 3, clockDrifts},
	{"follower's clock drifts", follower, wallClock, 1, 3, clockDrifts},
	{"guest's clock drifts", guest, wallClock, 1, 3, clockDrifts},

	{"follower demoted", follower, membership, 0.5, 2, demoted},
	{"follower replaced", follower, membership | process | disk, 2, 4, replaced},
	{"follower's disk lost", follower, membership | process | disk, 0.7, 2, diskLost},
	{"follower's disk copied", follower, membership | process | network | disk, 2, 4, diskCopied},
	{"authority rotated", leader, membership, 0.2, 1, rotated},
}

var kindsByName = func() map[string]kind {
	byName := make(map[string]kind)
	for _, k := range kinds {
		byName[k.name] = k
	}
	return byName
}()

// Kinds returns the names of all kinds.
func Kinds() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}
