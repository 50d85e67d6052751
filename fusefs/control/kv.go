package control

import (
	"fmt"
	"strings"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// noProcess is the pid of a lock without one. The File-Based Semaphore requires a pid, and its readers test
// it with kill(2), where 0 means their own process group. Process 1 is always alive and cannot be killed.
const noProcess = 1

// keyValues describes a lock of any format as the File-Based Semaphore does, in lines key=value. First come
// pid, timestamp (seconds since the Unix epoch) and tag, then fields unknown to that format.
func keyValues(lock *storepb.Lock) snapshot {
	facts := lock.GetFacts()
	pid := facts.GetPid()
	if pid == 0 {
		pid = noProcess
	}
	issued := facts.GetIssuedAt()
	if issued == 0 {
		issued = lock.GetAcquired()
	}
	var text strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s=%s\n", key, oneLine(value))
		}
	}
	line("pid", fmt.Sprint(pid))
	line("timestamp", fmt.Sprint(max(0, issued/int64(time.Second))))
	line("tag", facts.GetTag())
	line("host", facts.GetHost())
	line("holder", facts.GetHolder())
	line("format", lockfact.Format(facts.GetFormat()).String())
	if lock.GetBecause() != "" || lock.GetExclusive() {
		line("state", lock.GetState())
		line("token", fmt.Sprint(lock.GetToken()))
	}
	return snapshot(text.String())
}
