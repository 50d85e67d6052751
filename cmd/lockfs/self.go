package main

import (
	"fmt"
	"os"

	"lockfs/raftstore/storepb"
)

// self is whom this process looks for. The ports of the servers believe it: there is no authentication on them.
func self() *storepb.Viewer {
	viewer := &storepb.Viewer{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	groups, err := os.Getgroups()
	viewer.MoreGroups = err != nil
	for _, group := range groups {
		viewer.Groups = append(viewer.Groups, uint32(group))
	}
	return viewer
}

// hostName is how sessions and lock files name this host.
func hostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this host: %w", err)
	}
	return name, nil
}
