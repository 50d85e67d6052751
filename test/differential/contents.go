package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Family is a set of processes that share their looks: a worker and its child programs.
type Family struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

// Placeholders in contents, replaced by facts about the writer and the time.
const (
	ownHost   = "{host}"
	ownPID    = "{pid}"
	otherHost = "{other host}"
	otherPID  = "{other pid}"
	second    = "{second}" // of 1970
	moment    = "{moment}" // as in JSON
)

// told are contents without facts: no prefix or continuation of them has a word that is a host name, a pid or
// a time.
var told = []string{"{number}", "{number}\n", "{number}{number}\n", "hello\n", "two words\n", "one line\nand one more\n", "[section]\nkey: value\n"}

// telling are contents with facts that are no locks by themselves.
var telling = []string{
	"", "", ownHost + "\n", otherHost + "\n", ownHost + " " + ownPID + "\n", "pid: " + ownPID + "\n", otherHost + " " + otherPID + " " + second + "\n",
	ownHost + " " + ownPID + " " + second + "\n", second + "\n", "last written " + moment + "\n", `{"pid": ` + ownPID + "}\n",
	otherPID + "00007\n",
}

// locks are contents of all formats.
var locks = []string{
	ownPID + "\n", ownPID + "\n", "     " + ownPID + "\n",
	"pid=" + ownPID + "\ntimestamp=" + second + "\n",
	"pid=" + ownPID + "\ntimestamp=" + second + "\ntag=test\n",
	`{"lock_version":"v1","lock_name":"f","request_id":"req_` + ownHost + `","actor":"a","intent":"i","intent_version":"1","host_id":"` + ownHost +
		`","pid":` + ownPID + `,"created_at":"` + moment + `","last_heartbeat_at":"` + moment + `","ttl_seconds":3600,"metadata":{}}`,
	`{"task_id":"f","worker":"` + ownHost + `","acquired_at":"` + moment + `"}`,
	`{"holder":"` + ownHost + `","pid":` + ownPID + `,"hostname":"` + ownHost + `","started_at":"` + moment + `"}` + "\n",
	`{"urn":"urn:forrst:ext:atomicLock","key":"f","owner":"550e8400-e29b-41d4-a716-446655440000","acquired_at":"` + moment +
		`","expires_at":"2999-01-01T00:00:00Z"}`,
}

// marks are words that identify the format of the contents above, except pid.
var marks = []string{"lock_version", "pid=", "timestamp=", "holder", "task_id", "urn:forrst"}

// content returns a content for a mode.
func content(random *rand.Rand, mode Mode) string {
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	switch mode {
	case Exclusive:
		return pick(told)
	case Plain:
		return pick([]string{pick(told), pick(telling)})
	}
	return pick([]string{pick(told), pick(telling), pick(locks), pick(locks)})
}

// writer fills in the placeholders.
type writer struct {
	family Family
	other  Family
	digit  string
}

// fill writes a content.
func (w writer) fill(content string) string {
	now := time.Now()
	return strings.NewReplacer(
		ownHost, w.family.Host, ownPID, fmt.Sprint(w.family.PID), otherHost, w.other.Host, otherPID, fmt.Sprint(w.other.PID),
		second, fmt.Sprint(now.Unix()), moment, now.UTC().Format(time.RFC3339), "{number}", w.digit,
	).Replace(content)
}

// writers returns the writers of some families. Numbers are one repeated digit, and no pid of their
// processes.
func writers(families []Family) (all []writer) {
	digit := byte('1')
	for taken := true; taken && digit < '9'; {
		digit++
		taken = false
		for _, f := range families {
			taken = taken || strings.Trim(fmt.Sprint(f.PID), string(digit)) == ""
		}
	}
	for i, f := range families {
		all = append(all, writer{f, families[(i+1)%len(families)], string(digit)})
	}
	return all
}
