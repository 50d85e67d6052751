package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// harmlessFields are the fields of an event without data from a lock's content, in contrast to the holder's
// host, PID and name, and the reason.
var harmlessFields = []string{"number", "event", "timestamp", "lock_path", "token", "format", "by"}

// aboutHosts are events whose host is not a holder's.
var aboutHosts = []string{"host_unreachable", "host_back", "host_forgotten", "session_ended"}

// harmlessEvents removes the other fields from each line.
func harmlessEvents(lines []byte) ([]byte, error) {
	var kept bytes.Buffer
	for line := range bytes.Lines(lines) {
		event := map[string]json.RawMessage{}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("an event is not JSON: %w", err)
		}
		harmless := map[string]json.RawMessage{}
		for _, field := range harmlessFields {
			if value, found := event[field]; found {
				harmless[field] = value
			}
		}
		var name string
		if err := json.Unmarshal(event["event"], &name); err == nil && slices.Contains(aboutHosts, name) {
			harmless["host"] = event["host"]
		}
		text, err := json.Marshal(harmless)
		if err != nil {
			return nil, err
		}
		kept.Write(append(text, '\n'))
	}
	return kept.Bytes(), nil
}
