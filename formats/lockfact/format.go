package lockfact

import "fmt"

// Format is a lock-file format. Its number is in the log, so it is never reused.
type Format uint16

// The formats. None is any content of no other format, also an empty or half-written one. The zero Format is
// no format; in a rule it means any.
const (
	Tower Format = iota + 1
	Semaphore
	Swarm
	Beads
	PID
	Forrst
	None
	Data // for rules only: matching files are data and no locks, whatever their content
)

// traits are properties for decisions of replicas, so they must not change.
type traits struct {
	name      string
	byProcess bool // its locks live as long as a process
	byName    bool // a name identifies its holder, whatever the process and host
}

var formats = [...]traits{
	Tower:     {name: "tower", byName: true},
	Semaphore: {name: "semaphore"},
	Swarm:     {name: "swarm", byName: true},
	Beads:     {name: "beads", byProcess: true},
	PID:       {name: "pid", byProcess: true},
	Forrst:    {name: "forrst", byName: true},
	None:      {name: "none"},
	Data:      {name: "data"},
}

// traits returns the zero value for an unknown format.
func (f Format) traits() traits {
	if int(f) >= len(formats) {
		return traits{}
	}
	return formats[f]
}

// String returns the name of the format, as in output and rules; empty if unknown.
func (f Format) String() string { return f.traits().name }

// Formats returns all formats for rules, None and Data last.
func Formats() []Format {
	return []Format{Tower, Semaphore, Swarm, Beads, PID, Forrst, None, Data}
}

// ParseFormat parses the name of a format.
func ParseFormat(s string) (Format, error) {
	for _, f := range Formats() {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("format: %q is none of %v", s, Formats())
}
