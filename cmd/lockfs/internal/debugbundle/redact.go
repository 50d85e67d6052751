package debugbundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Patterns of secrets in texts not written for the bundle, mainly logs.
var (
	pemBlock  = regexp.MustCompile(`(?s)-----BEGIN ([A-Z0-9 ]+)-----.*?(?:-----END [A-Z0-9 ]+-----|\z)`)
	joinToken = regexp.MustCompile(`\blockfs-(server|client)-[A-Za-z0-9_-]{16,}`)
	// A fencing token is a number, and not secret.
	assigned = regexp.MustCompile(`(?i)((?:[a-z0-9_-]*(?:token|secret|passw(?:or)?d|passphrase|credential|private[_-]?key|seal[_-]?key|api[_-]?key)[a-z0-9_-]*|authorization|owner)["']?(?:\s*[=:]\s*|\s+)["']?)(bearer\s+)?([^\s"',;{}()]+)`)
	number   = regexp.MustCompile(`^[0-9]+$`)
)

const redacted = "REDACTED"

// redact removes private keys (all PEM blocks but certificates), join tokens, and values of names like token,
// secret, password, key or owner in flags, variables, JSON and logs. It prefers too much to too little.
func redact(text []byte) []byte {
	text = pemBlock.ReplaceAllFunc(text, func(block []byte) []byte {
		if bytes.HasPrefix(block, []byte("-----BEGIN CERTIFICATE-----")) {
			return block
		}
		return []byte(redacted)
	})
	text = joinToken.ReplaceAll(text, []byte("lockfs-$1-"+redacted))
	return assigned.ReplaceAllFunc(text, func(match []byte) []byte {
		parts := assigned.FindSubmatch(match)
		if number.Match(parts[3]) || len(bytes.TrimSpace(parts[3])) == 0 {
			return match
		}
		return append(append(bytes.Clone(parts[1]), parts[2]...), redacted...)
	})
}

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
