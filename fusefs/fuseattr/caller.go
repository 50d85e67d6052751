package fuseattr

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// overflowID replaces, in /proc, ids outside this process's user namespace.
const overflowID = 65534

// CallerOf returns the caller of a request, for the audit and for ownership.
func CallerOf(header *fuse.InHeader) *storepb.Caller {
	caller := &storepb.Caller{Uid: header.Uid, Gid: header.Gid, Pid: header.Pid}
	if uid := hostinfo.BudgetUID(header.Uid); uid != header.Uid {
		caller.BudgetUid = uid
	}
	return caller
}

// ViewerOf returns the caller of a request with its groups, for permission checks of the control directory.
// The kernel checks all other permissions (default_permissions). A request carries only the first group;
// /proc has all groups of the waiting caller.
func ViewerOf(header *fuse.InHeader) *storepb.Viewer {
	viewer := &storepb.Viewer{Uid: header.Uid, Gid: header.Gid}
	if header.Uid != 0 {
		viewer.Groups, viewer.MoreGroups = groupsOf(header)
	}
	return viewer
}

func groupsOf(header *fuse.InHeader) (groups []uint32, more bool) {
	if header.Pid == 0 {
		return nil, true // invisible
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", header.Pid))
	if err != nil {
		return nil, true
	}
	return parseGroups(text, header.Uid, header.Gid)
}

// parseGroups parses proc_pid_status(5), if the thread acts as the user and group of the request there. more
// says that others are possible.
func parseGroups(status []byte, uid, gid uint32) (groups []uint32, more bool) {
	const actsAs = 3 // real, effective, saved, of file system
	field := func(name string) [][]byte {
		_, value, _ := bytes.Cut(status, []byte("\n"+name+":"))
		value, _, _ = bytes.Cut(value, []byte("\n"))
		return bytes.Fields(value)
	}
	same := func(ids [][]byte, id uint32) bool {
		return len(ids) > actsAs && string(ids[actsAs]) == strconv.FormatUint(uint64(id), 10)
	}
	if !same(field("Uid"), uid) || !same(field("Gid"), gid) {
		return nil, true
	}
	for _, text := range field("Groups") {
		group, err := strconv.ParseUint(string(text), 10, 32)
		if err != nil || group == overflowID {
			more = true
			continue
		}
		groups = append(groups, uint32(group))
	}
	return groups, more
}

// MayOpen reports whether a caller certainly has the permissions for open flags.
func MayOpen(attr *storepb.Attr, caller *fuse.InHeader, flags uint32) bool {
	return namespace.Permits(ViewerOf(caller), attr, NeededToOpen(flags))
}

// NeededToOpen returns the permissions for open flags.
func NeededToOpen(flags uint32) (need uint32) {
	switch flags & syscall.O_ACCMODE {
	case syscall.O_RDONLY:
		need = namespace.MayRead
	case syscall.O_WRONLY:
		need = namespace.MayWrite
	default:
		need = namespace.MayRead | namespace.MayWrite
	}
	if flags&syscall.O_TRUNC != 0 {
		need |= namespace.MayWrite
	}
	return need
}
