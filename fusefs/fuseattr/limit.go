package fuseattr

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// MaxWrite is the largest request of the kernel. It exceeds the largest content: a write is never split, so
// it is one commit or none.
const MaxWrite = 1 << 20

// SmallestEntry is the minimum size of a directory entry in the kernel's buffer.
const SmallestEntry = 32

// LongestWait returns half of the kernel's time limit for requests; 0: none.
func LongestWait() time.Duration {
	limit := time.Duration(0)
	for _, name := range []string{"default_request_timeout", "max_request_timeout"} {
		text, err := os.ReadFile("/proc/sys/fs/fuse/" + name)
		if err != nil {
			continue // no limits before Linux 6.16
		}
		seconds, err := strconv.Atoi(string(bytes.TrimSpace(text)))
		if err != nil || seconds <= 0 {
			continue
		}
		if allowed := time.Duration(seconds) * time.Second / 2; limit == 0 || allowed < limit {
			limit = allowed
		}
	}
	return limit
}
