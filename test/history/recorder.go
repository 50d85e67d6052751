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

// Record is the common part of all recorded calls.
type Record struct {
	Client int           `json:"client"`
	Seq    int           `json:"seq"` // of the client, from 1
	Host   string        `json:"host"`
	Dir    string        `json:"dir"`   // last element of its path
	Start  int64         `json:"start"` // nanoseconds of CLOCK_MONOTONIC
	End    int64         `json:"end"`   // 0: it did not return
	Errno  syscall.Errno `json:"errno"`
}

// Orphaned reports whether the call has no outcome because its daemon was gone.
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

// recordable is a call of any kind of history.
type recordable interface{ record() *Record }

// Recorder records each call before it begins and again after it has returned, so a call interrupted by the
// death of its process is known. Several recorders may write to one file.
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

// Do records a call made by do, which fills in the result.
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

// begin records the begin of a call.
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

// ReadCalls reads recorded calls. If a call was recorded twice, the last record counts.
func ReadCalls(paths ...string) ([]*Call, error) { return readCalls[Call](paths) }

// ReadLockCalls is ReadCalls for lock calls.
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
		// A truncated last line is a call without begin or without a known outcome.
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

// now is a clock shared by all hosts made of namespaces.
func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return ts.Nano()
}

// Now returns the time on the clock of records.
func Now() int64 { return now() }
