package namespace

import "time"

// staleness says why a lock is stale. It is never modified.
type staleness struct {
	reason  string
	since   int64
	byTime  bool // else its process or its host is gone
	ofMaker bool // the process is the one that made the name
}

// withoutMaker is why a lock is stale whose name has another maker now.
func (s *staleness) withoutMaker() *staleness {
	if s != nil && s.ofMaker {
		return nil
	}
	return s
}

func timestamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
