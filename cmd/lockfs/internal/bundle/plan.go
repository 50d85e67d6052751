package bundle

import "time"

// plan is what a bundle is made with.
type plan struct {
	name string
	ask  []string // flags that say whom to ask
	cpu  time.Duration
	data []string
}

// commandTime is how long a command may take that asks the cluster.
const commandTime = 30 * time.Second
