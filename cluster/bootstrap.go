package cluster

import (
	"errors"
	"fmt"
)

// InClusterError reports a data directory that belongs to a cluster already.
type InClusterError struct {
	Dir     string
	Node    string // name of the server
	Cluster string // id
}

func (e *InClusterError) Error() string {
	return fmt.Sprintf("data directory %s belongs to cluster %s already, and %s is a server of that: start it with `lockfs server`", e.Dir, e.Cluster, e.Node)
}

// Bootstrap makes a data directory that of the first server of a new cluster, and returns the cluster's id. The server is not started:
// [Open] does that, without Config.Bootstrap. After an interruption at any moment Bootstrap goes on where it was, with the same Config.
// The error is an [InClusterError] if nothing is left to do.
//
// To bootstrap is a step of its own, because a server that is started on an empty disk cannot know whether its cluster is new, or its disk.
func Bootstrap(cfg Config) (cluster string, err error) {
	cfg.Bootstrap = true
	if err := cfg.validate(); err != nil {
		return "", err
	}
	n := newNode(cfg)
	defer func() {
		if n.dir != nil {
			err = errors.Join(err, n.dir.Close())
		}
	}()
	if err := n.openDirectory(); err != nil {
		return "", err
	}
	if n.dir.HasJoined() {
		return "", &InClusterError{Dir: n.dir.Path, Node: n.dir.Name, Cluster: n.dir.ClusterID()}
	}
	return n.dir.ClusterID(), n.bootstrap()
}
