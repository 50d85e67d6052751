package formats

import (
	"lockfs/formats/beads"
	"lockfs/formats/forrst"
	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// kind describes a format for this package.
type kind struct {
	format Format

	// The mark of the format, in the members of a JSON object or in other text. One of the two is nil.
	inObject func(*strictjson.Object) bool
	inText   func(content []byte) bool

	facts   func(content []byte, written Origin) (Facts, error) // without any rule; the error of Parse
	guard   Guard                                               // of an invalid lock
	dead    func(content []byte) bool                           // whether its process is gone; nil: it lives by time
	details func(content []byte, s *Status)                     // adds details of a valid lock to its facts; nil: none
}

// kinds lists all formats in the order of recognition: the first with its mark wins.
var kinds = [...]kind{
	{
		format: Tower, guard: GuardHost, facts: tower.FactsOf, details: detailsOfTower,
		inObject: func(o *strictjson.Object) bool { return o.Is("lock_version", tower.Version) },
	},
	{
		format: Forrst, guard: GuardOwner, facts: forrst.FactsOf,
		inObject: func(o *strictjson.Object) bool { return o.Is("urn", forrst.URN) },
	},
	{
		format: Swarm, guard: GuardAnyone, facts: swarm.FactsOf,
		inObject: func(o *strictjson.Object) bool { return o.Has("task_id", "worker") },
	},
	{
		format: Beads, guard: GuardHost, facts: beads.FactsOf, dead: isDeadBeads, details: detailsOfBeads,
		inObject: func(o *strictjson.Object) bool { return o.Has("holder", "pid", "hostname") },
	},
	{
		format: PID, guard: GuardHost, facts: pid.FactsOf, dead: isDeadPID,
		inText: func(content []byte) bool { _, err := pid.Parse(content); return err == nil },
	},
	{
		format: Semaphore, guard: GuardHost, facts: semaphore.FactsOf,
		inText: semaphore.IsMarked,
	},
}

// kindOf returns nil if no content has this format.
func kindOf(format Format) *kind {
	for i := range kinds {
		if kinds[i].format == format {
			return &kinds[i]
		}
	}
	return nil
}

func isDeadBeads(content []byte) bool {
	lock, err := beads.Parse(content)
	return err == nil && lock.Stale()
}

func isDeadPID(content []byte) bool {
	lock, err := pid.Parse(content)
	return err == nil && lock.Stale()
}

func detailsOfTower(content []byte, s *Status) {
	if l, err := tower.Parse(content); err == nil {
		s.Host, s.Acquired = lockfact.HolderName(l.HostID), l.CreatedAt
	}
}

func detailsOfBeads(content []byte, s *Status) {
	if l, err := beads.Parse(content); err == nil {
		s.Host, s.PID, s.Acquired = lockfact.HolderName(l.Hostname), l.PID, l.StartedAt
	}
}
