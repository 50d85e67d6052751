package lockjson

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"lockfs/raftstore/storepb"
)

// Event is how an event is printed, one object a line: in audit.jsonl, by `lockfs events --json` and
// in .lockfs/events and .lockfs/history. Its names follow the tower protocol (sections 4.3 and 7.2) where that has one.
type Event struct {
	Number       uint64    `json:"number"`          // from 1, without gaps
	Index        uint64    `json:"index,omitempty"` // of the command in the log that it came with
	Event        string    `json:"event"`
	Timestamp    time.Time `json:"timestamp"`                // cluster time
	LockName     string    `json:"lock_name,omitempty"`      // last element of the path
	LockPath     string    `json:"lock_path,omitempty"`      // from the root of the mount
	Directory    uint64    `json:"lock_directory,omitempty"` // inode that the name was in, whatever its path is called
	Token        uint64    `json:"token,omitempty"`
	AcquiredAt   time.Time `json:"acquired_at,omitzero"` // of lock_acquired: cluster time, up to a second before
	Format       string    `json:"format,omitempty"`
	Holder       string    `json:"holder,omitempty"`
	Host         string    `json:"host,omitempty"` // of the holder, or what the event is about
	PID          uint32    `json:"pid,omitempty"`  // of the holder, as the content gives it
	By           *Caller   `json:"by,omitempty"`   // who made the call; lockfs itself if there is none
	Reason       string    `json:"reason,omitempty"`
	Request      string    `json:"request,omitempty"` // on whose behalf a lock was released, where the call said so
	PreviousLock *Previous `json:"previous_lock,omitempty"`
	PreviousHash string    `json:"previous_lock_hash,omitempty"` // "sha256:" and the content's checksum
	Cluster      string    `json:"cluster,omitempty"`            // of cluster_begun: its id
	Before       string    `json:"hash_before,omitempty"`        // of the event before; missing where a chain begins
	Hash         string    `json:"hash,omitempty"`               // see package eventchain, in hexadecimal; for root alone
}

// Caller is who made a call.
type Caller struct {
	Host string `json:"host"`
	PID  uint32 `json:"pid"`
	UID  uint32 `json:"uid"`
}

// Previous is the lock that was stolen.
type Previous struct {
	Token  uint64 `json:"token"`
	Format string `json:"format"`
	Holder string `json:"holder,omitempty"`
	Host   string `json:"host,omitempty"`
	PID    uint32 `json:"pid,omitempty"`
}

// DescribeEvent gives an event the form in which it is printed.
func DescribeEvent(e *storepb.Event) Event {
	described := Event{
		Number: e.GetNumber(), Event: e.GetEvent(), Timestamp: time.Unix(0, e.GetTime()).UTC(),
		LockPath: string(e.GetPath()), Token: e.GetToken(), Format: e.GetFormat(), Holder: e.GetHolder(),
		Host: e.GetHost(), PID: e.GetPid(), Reason: e.GetReason(), Request: e.GetRequest(), PreviousHash: e.GetPreviousHash(),
		Index: e.GetIndex(), Directory: e.GetParent(), Cluster: e.GetCluster(),
		Before: hex.EncodeToString(e.GetBefore()), Hash: hex.EncodeToString(e.GetHash()),
	}
	if e.GetAcquired() != 0 {
		described.AcquiredAt = time.Unix(0, e.GetAcquired()).UTC()
	}
	if len(e.GetPath()) > 0 {
		described.LockName = path.Base(described.LockPath)
	}
	if by := e.GetBy(); by != nil {
		described.By = &Caller{Host: by.GetHost(), PID: by.GetPid(), UID: by.GetUid()}
	}
	if p := e.GetPrevious(); p != nil {
		described.PreviousLock = &Previous{
			Token: p.GetToken(), Format: p.GetFormat(), Holder: p.GetHolder(), Host: p.GetHost(), PID: p.GetPid(),
		}
	}
	return described
}

// ParseEventLine reads what EventLine has rendered.
func ParseEventLine(line []byte) (*storepb.Event, error) {
	var d Event
	if err := json.Unmarshal(line, &d); err != nil {
		return nil, err
	}
	e := &storepb.Event{
		Number: d.Number, Event: d.Event, Time: d.Timestamp.UnixNano(), Token: d.Token, Format: d.Format,
		Holder: d.Holder, Host: d.Host, Pid: d.PID, Reason: d.Reason, Request: d.Request, PreviousHash: d.PreviousHash,
		Index: d.Index, Parent: d.Directory, Cluster: d.Cluster,
	}
	if !d.AcquiredAt.IsZero() {
		e.Acquired = d.AcquiredAt.UnixNano()
	}
	var err error
	if e.Before, err = hashOf(d.Before); err != nil {
		return nil, err
	}
	if e.Hash, err = hashOf(d.Hash); err != nil {
		return nil, err
	}
	if d.LockPath != "" {
		e.Path = []byte(d.LockPath)
	}
	if d.By != nil {
		e.By = &storepb.Caller{Host: d.By.Host, Pid: d.By.PID, Uid: d.By.UID}
	}
	if p := d.PreviousLock; p != nil {
		e.Previous = &storepb.Event{Token: p.Token, Format: p.Format, Holder: p.Holder, Host: p.Host, Pid: p.PID}
	}
	return e, nil
}

// hashOf is nil where there is none.
func hashOf(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	return hex.DecodeString(text)
}

// EventLine renders an event as a line of JSON, without its newline. What a terminal could obey is escaped;
// bytes of a path that are not UTF-8 become U+FFFD.
func EventLine(e *storepb.Event) []byte { return jsonLine(DescribeEvent(e)) }

func jsonLine(value any) []byte {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings, numbers and times of this century
	}
	return Escape(line)
}

// isUnprintable reports whether a terminal might do something else with a character than show it. Newlines are in JSON between values only.
func isUnprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }

// Escape returns the same JSON value with every character escaped that a terminal might obey, such as U+009B or U+202E.
func Escape(text []byte) []byte {
	if !bytes.ContainsFunc(text, isUnprintable) {
		return text
	}
	var escaped []byte
	for _, r := range string(text) {
		if !isUnprintable(r) {
			escaped = utf8.AppendRune(escaped, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return escaped
}
