package daemon

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// collectorInterval is the time between two looks at the size of the heap. In it a heap grows by what may be left uncollected at most.
	collectorInterval = time.Second
	// leastGarbage may always be left uncollected, in bytes: with few locks the collector would run many times a second.
	leastGarbage = 32 << 20
	// A heap of many locks lives long, and is not to be doubled by what is left uncollected.
	leastPercent = 25
	// The most percent of a heap of a server, and of a mount. A heap of a mount is small until thousands of programs wait for locks.
	serverPercent = 400
	mountPercent  = 100
)

// tuneCollector adjusts the garbage collector for as long as the process runs, unless GOGC is set.
func tuneCollector(most int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := 0
	for range time.Tick(collectorInterval) {
		metrics.Read(live)
		if next := collectorPercent(live[0].Value.Uint64(), most); next != percent {
			percent = next
			debug.SetGCPercent(percent)
		}
	}
}

// collectorPercent returns GOGC for a heap with live bytes, in steps that seldom change.
func collectorPercent(live uint64, most int) int {
	percent := most
	for percent > leastPercent && live*uint64(percent)/100 > leastGarbage {
		percent /= 2
	}
	return percent
}
