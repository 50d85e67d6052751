package formats

import (
	"bytes"

	"lockfs/formats/beads"
	"lockfs/formats/forrst"
	"lockfs/formats/internal/strictjson"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// Detect says which format a content is of. It takes time linear in the length of the content,
// whatever that is.
func Detect(content []byte) Format {
	if bytes.HasPrefix(bytes.TrimLeft(content, " \t\r\n"), []byte("{")) {
		return detectJSON(content)
	}
	if _, err := pid.Parse(content); err == nil {
		return PID
	}
	if _, err := semaphore.Parse(content); err == nil {
		return Semaphore
	}
	return None
}

// detectJSON lets the first format that recognises its members decide.
func detectJSON(content []byte) Format {
	object, err := strictjson.Parse(content)
	if err != nil {
		return None
	}
	format := None
	switch {
	case object.Is("lock_version", tower.Version):
		if _, err = tower.Parse(content); err == nil {
			format = Tower
		}
	case object.Is("urn", forrst.URN):
		if _, err = forrst.Parse(content); err == nil {
			format = Forrst
		}
	case object.Has("task_id", "worker"):
		if _, err = swarm.Parse(content); err == nil {
			format = Swarm
		}
	case object.Has("holder", "pid", "hostname"):
		if _, err = beads.Parse(content); err == nil {
			format = Beads
		}
	}
	return format
}
