package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Record is what is written down of every call.
type Record struct {
	Client int           `json:"client"`
	Seq    int           `json:"seq"` // of the client, from 1
	Host   string        `json:"host"`
	Dir    string        `json:"dir"`   // its last element
	Start  int64         `json:"start"` // nanoseconds of CLOCK_MONOTONIC
	End    int64         `json:"end"`   // 0: it did not return
	Errno  syscall.Errno `json:"errno"`
}

// Orphaned tells that the call has no outcome because nobody was left to answer it.
func (r *Record) Orphaned() bool {
	switch r.Errno {
	case syscall.ENOTCONN, syscall.ECONNABORTED, syscall.EIO:
		return true
	}
	return r.End == 0
}

func (r *Record) outcome() string {
	switch {
	case r.End == 0:
		return "did not return"
	case r.Errno == 0:
		return "ok"
	}
	return r.Errno.Error()
}

func (r *Record) record() *Record { return r }

// recordable is a call of either kind of history.
type recordable interface{ record() *Record }

// Recorder writes calls down, each before it begins and again when it has returned, so that one which
// was under way when its process died is known of. It is a file to which several may write.
type Recorder struct {
	mu   sync.Mutex
	file *os.File
}

// NewRecorder appends to a file on the local disk.
func NewRecorder(path string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: file}, nil
}

// Do records a call that do makes. do fills in what it got.
func (r *Recorder) Do(call recordable, do func() error) error {
	if err := r.begin(call); err != nil {
		return err
	}
	record := call.record()
	record.Start = now()
	err := do()
	record.End = now()
	if err != nil {
		if !errors.As(err, &record.Errno) {
			return fmt.Errorf("no system call's error: %w", err)
		}
	}
	return r.write(call)
}

// begin records a call that is about to be made.
func (r *Recorder) begin(call recordable) error {
	call.record().Start = now()
	return r.write(call)
}

func (r *Recorder) write(call recordable) error {
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// ReadCalls reads what was recorded in some files. Of a call that was recorded twice the last counts.
func ReadCalls(paths ...string) ([]*Call, error) { return readCalls[Call](paths) }

// ReadLockCalls is ReadCalls for what was done to locks.
func ReadLockCalls(paths ...string) ([]*LockCall, error) { return readCalls[LockCall](paths) }

func readCalls[C any, P interface {
	*C
	recordable
}](paths []string) ([]*C, error) {
	type key struct {
		dir         string
		client, seq int
	}
	var calls []*C
	for _, path := range paths {
		at := make(map[key]int)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		// A last line that is cut short is of a call that had not begun, or has no known outcome.
		text = text[:bytes.LastIndexByte(text, '\n')+1]
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			call := new(C)
			if err := json.Unmarshal(lines.Bytes(), call); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			record := P(call).record()
			k := key{record.Dir, record.Client, record.Seq}
			if i, begun := at[k]; begun {
				calls[i] = call
				continue
			}
			at[k] = len(calls)
			calls = append(calls, call)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return calls, nil
}

// now is a clock that all hosts made of namespaces share.
func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return ts.Nano()
}

// Now is the clock that calls are recorded with.
func Now() int64 { return now() }
