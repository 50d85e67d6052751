package rpc

import (
	"fmt"
	"slices"
	"strings"

	"lockfs/cluster/clusterpb"
)

// Clusters has the cluster of each server, by the servers' own statements. The zero value is empty.
type Clusters struct {
	servers map[string][]string // by cluster id
	over    map[string]bool     // ids of clusters replaced by another one
}

// Add adds a server's statement; a server may not know its cluster yet.
func (c *Clusters) Add(server string, status *clusterpb.StatusReply) {
	if c.servers == nil {
		c.servers, c.over = make(map[string][]string), make(map[string]bool)
	}
	for _, id := range status.GetEarlierClusters() {
		c.over[id] = true
	}
	if id := status.GetCluster(); id != "" && !slices.Contains(c.servers[id], server) {
		c.servers[id] = append(c.servers[id], server)
		slices.Sort(c.servers[id])
	}
}

// ByID returns the servers of each cluster.
func (c *Clusters) ByID() map[string][]string { return c.servers }

// Only returns the id of the servers' common cluster; empty: unknown. It ignores servers of a cluster
// replaced by another one here. The error is a [SeveralClustersError].
func (c *Clusters) Only() (id string, err error) {
	var live []string
	for id := range c.servers {
		if !c.over[id] {
			live = append(live, id)
		}
	}
	switch len(live) {
	case 0:
		return "", nil
	case 1:
		return live[0], nil
	}
	return "", &SeveralClustersError{c.servers}
}

// SeveralClustersError reports servers of different clusters. A lock held in one is free in the other.
type SeveralClustersError struct {
	Servers map[string][]string // by cluster id
}

func (e *SeveralClustersError) Error() string {
	var parts []string
	for id, servers := range e.Servers {
		parts = append(parts, fmt.Sprintf("%s to cluster %s", strings.Join(servers, ", "), id))
	}
	slices.Sort(parts)
	return fmt.Sprintf("the servers belong to %d clusters, and a lock of one is free in the other: %s. Stop the servers of the wrong one, empty their data "+
		"directories and have them join with tokens; or name the servers of one cluster only", len(parts), strings.Join(parts, "; "))
}
