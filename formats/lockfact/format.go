package lockfact

import "fmt"

// Format is a lock-file format. Its number is what the log has of it, so it is never given to another.
type Format uint16

// The formats. None is any content that is not of one of the others, also an empty or half-written one. The zero Format
// is none of them: in a rule, any.
const (
	Tower Format = iota + 1
	Semaphore
	Swarm
	Beads
	PID
	Forrst
	None
	Data // for rules only: what fits is data and no lock, whatever its content. No content is of it
)

// traits is what replicas decide by, so it must not change.
type traits struct {
	name      string
	byProcess bool // its locks live as long as a process
	byName    bool // its holder is known by a name, whatever its process and host
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

// traits of what is no format are those of the zero Format.
func (f Format) traits() traits {
	if int(f) >= len(formats) {
		return traits{}
	}
	return formats[f]
}

// String is the name of the format, as it is shown and as rules spell it; empty for what is none.
func (f Format) String() string { return f.traits().name }

// Formats lists every format that a rule can have, None and Data last.
func Formats() []Format {
	return []Format{Tower, Semaphore, Swarm, Beads, PID, Forrst, None, Data}
}

// ParseFormat accepts the name of a format.
func ParseFormat(s string) (Format, error) {
	for _, f := range Formats() {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("format: %q is none of %v", s, Formats())
}
