package debugbundle

import "time"

// plan is the options of a bundle.
type plan struct {
	name string
	ask  []string // connection flags
	cpu  time.Duration
	data []string
}

// commandTime is the time limit of a command with a request to the cluster.
const commandTime = 30 * time.Second
