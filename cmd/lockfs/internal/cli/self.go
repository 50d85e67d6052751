package cli

import (
	"fmt"
	"os"

	"lockfs/raftstore/storepb"
)

// Self identifies this process for permission checks. A daemon checks the identity by its socket; servers
// trust their hosts.
func Self() *storepb.Viewer {
	viewer := &storepb.Viewer{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	groups, err := os.Getgroups()
	viewer.MoreGroups = err != nil
	for _, group := range groups {
		viewer.Groups = append(viewer.Groups, uint32(group))
	}
	return viewer
}

// HostName returns the name of this host in sessions and lock files.
func HostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this host: %w", err)
	}
	return name, nil
}
