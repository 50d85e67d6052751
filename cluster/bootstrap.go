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

// Bootstrap makes a data directory that of the first server of a new cluster, and returns the cluster's
// id. It does not start the server: [Open] does, without Config.Bootstrap. After an interruption call it
// again with the same Config. The error is an [InClusterError] if nothing is left to do.
//
// Bootstrap is a separate step, because a server started on an empty disk cannot know whether its cluster
// is new, or its disk.
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
