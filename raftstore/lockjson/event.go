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

// Event is an event in JSON, one object a line: in audit.jsonl, in the output of `lockfs events --json`, in
// .lockfs/events and in .lockfs/history. Its names follow the tower protocol where it has one (sections 4.3
// and 7.2).
type Event struct {
	Number       uint64    `json:"number"`          // from 1, without gaps
	Index        uint64    `json:"index,omitempty"` // of its command in the log
	Event        string    `json:"event"`
	Timestamp    time.Time `json:"timestamp"`                // cluster time
	LockName     string    `json:"lock_name,omitempty"`      // last element of the path
	LockPath     string    `json:"lock_path,omitempty"`      // from the root of the mount
	Directory    uint64    `json:"lock_directory,omitempty"` // inode of the directory, whatever its path
	Token        uint64    `json:"token,omitempty"`
	AcquiredAt   time.Time `json:"acquired_at,omitzero"` // of lock_acquired: cluster time, up to a second before
	Format       string    `json:"format,omitempty"`
	Holder       string    `json:"holder,omitempty"`
	Host         string    `json:"host,omitempty"` // of the holder, or the subject of the event
	PID          uint32    `json:"pid,omitempty"`  // of the holder, as in the content
	By           *Caller   `json:"by,omitempty"`   // the caller; absent: lockfs itself
	Reason       string    `json:"reason,omitempty"`
	Request      string    `json:"request,omitempty"` // for which a lock was released, if the call named it
	PreviousLock *Previous `json:"previous_lock,omitempty"`
	PreviousHash string    `json:"previous_lock_hash,omitempty"` // "sha256:" and the content's checksum
	Cluster      string    `json:"cluster,omitempty"`            // of cluster_begun: its id
	Before       string    `json:"hash_before,omitempty"`        // of the event before; absent if a chain begins
	Hash         string    `json:"hash,omitempty"`               // package eventchain; for root
}

// Caller is the process that made a call.
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

// DescribeEvent converts an event to its JSON form.
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

// ParseEventLine parses a line of EventLine.
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

// hashOf returns nil for an empty text.
func hashOf(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	return hex.DecodeString(text)
}

// EventLine returns an event as a line of JSON, without its newline. Terminal controls are escaped. Bytes of
// a path with invalid UTF-8 become U+FFFD.
func EventLine(e *storepb.Event) []byte { return jsonLine(DescribeEvent(e)) }

func jsonLine(value any) []byte {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings, numbers and times of this century
	}
	return Escape(line)
}

// isUnprintable reports whether a character may control a terminal. Newlines occur only between values of
// JSON.
func isUnprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }

// Escape returns the same JSON value with all terminal controls escaped, such as U+009B or U+202E.
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
