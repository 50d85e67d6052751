package formats

import (
	"bytes"

	"lockfs/formats/forrst"
	"lockfs/formats/internal/strictjson"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/formats/tower"
)

// Detect says which format a content is of, by its mark: it says which protocol it follows, whether or not it keeps
// to all of its rules, which [FactsOf] tells. A content that may be half of one is of none. It takes time linear in the
// length of the content, whatever that is.
func Detect(content []byte) Format {
	if bytes.HasPrefix(bytes.TrimLeft(content, " \t\r\n"), []byte("{")) {
		if object, err := strictjson.Scan(content); err == nil {
			return formatOf(object)
		}
	}
	if _, err := pid.Parse(content); err == nil {
		return PID
	}
	if semaphore.IsMarked(content) {
		return Semaphore
	}
	return None
}

// formatOf lets the first format that recognises the members decide.
func formatOf(object *strictjson.Object) Format {
	switch {
	case object.Is("lock_version", tower.Version):
		return Tower
	case object.Is("urn", forrst.URN):
		return Forrst
	case object.Has("task_id", "worker"):
		return Swarm
	case object.Has("holder", "pid", "hostname"):
		return Beads
	}
	return None
}
