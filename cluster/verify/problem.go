package verify

// Kind is what is wrong with a log.
type Kind string

// The kinds of problems.
const (
	Garbled   Kind = "garbled"   // a line that is no event
	Changed   Kind = "changed"   // an event that is not what was written
	Missing   Kind = "missing"   // events between two that are there
	Moved     Kind = "moved"     // an event after a later one
	Repeated  Kind = "repeated"  // an event that is there twice
	Unchained Kind = "unchained" // an event that does not follow the one before it
	Differs   Kind = "differs"   // events that another log has otherwise
	Stranger  Kind = "stranger"  // a log of another cluster
)

// Problem is something wrong with a log.
type Problem struct {
	Kind   Kind   `json:"kind"`
	Log    string `json:"log"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1
	Number uint64 `json:"number,omitempty"` // of the event
	Text   string `json:"text"`
}
