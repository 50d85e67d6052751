package kernel

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// MaxWrite is what the kernel may send at once. It is above the largest content: a write is never split, so it is one commit or none.
const MaxWrite = 1 << 20

// SmallestEntry is what an entry of a directory takes at least in the kernel's buffer.
const SmallestEntry = 32

// LongestWait reads for how long the kernel lets a request take; 0: for ever.
func LongestWait() time.Duration {
	limit := time.Duration(0)
	for _, name := range []string{"default_request_timeout", "max_request_timeout"} {
		text, err := os.ReadFile("/proc/sys/fs/fuse/" + name)
		if err != nil {
			continue // a kernel before 6.16 has no limits
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
