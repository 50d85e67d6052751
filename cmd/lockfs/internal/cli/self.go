package cli

import (
	"fmt"
	"os"

	"lockfs/raftstore/storepb"
)

// Self is whom this process looks for. A daemon that is asked by its socket knows that better; servers believe their hosts.
func Self() *storepb.Viewer {
	viewer := &storepb.Viewer{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	groups, err := os.Getgroups()
	viewer.MoreGroups = err != nil
	for _, group := range groups {
		viewer.Groups = append(viewer.Groups, uint32(group))
	}
	return viewer
}

// HostName is how sessions and lock files name this host.
func HostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this host: %w", err)
	}
	return name, nil
}
