package daemon

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// collectorInterval is the time between two looks at the size of the heap.
	collectorInterval = 10 * time.Second
	// leastGarbage may always be left uncollected, in bytes: with few locks the collector would run many times a second.
	leastGarbage = 32 << 20
	// A heap of many locks lives long, and is not to be doubled by what is left uncollected.
	leastPercent = 25
	mostPercent  = 400
)

// tuneCollector goes on for as long as the process runs. The environment variable GOGC keeps it from doing anything.
func tuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := 0
	for range time.Tick(collectorInterval) {
		metrics.Read(live)
		if next := collectorPercent(live[0].Value.Uint64()); next != percent {
			percent = next
			debug.SetGCPercent(percent)
		}
	}
}

// collectorPercent is what may be left uncollected of a heap with so many bytes in use, in steps that seldom change.
func collectorPercent(live uint64) int {
	percent := mostPercent
	for percent > leastPercent && live*uint64(percent)/100 > leastGarbage {
		percent /= 2
	}
	return percent
}
