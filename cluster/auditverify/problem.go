package auditverify

// Kind is the kind of a problem.
type Kind string

// Kinds of problems.
const (
	Garbled   Kind = "garbled"   // a line without a valid event
	Changed   Kind = "changed"   // an event with other contents than written
	Missing   Kind = "missing"   // missing events between two lines
	Moved     Kind = "moved"     // an event after a later one
	Repeated  Kind = "repeated"  // a duplicate event
	Unchained Kind = "unchained" // an event with a wrong hash of the previous one
	Differs   Kind = "differs"   // events unlike those in other logs
	Stranger  Kind = "stranger"  // a log of another cluster
)

// Problem is a problem with a log.
type Problem struct {
	Kind   Kind   `json:"kind"`
	Log    string `json:"log"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1
	Number uint64 `json:"number,omitempty"` // of the event
	Text   string `json:"text"`
}
