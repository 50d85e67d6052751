package hostinfo

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// IsAdministrator reports whether a process or thread may administer this host. It must be in the user
// namespace of this process and have CAP_SYS_ADMIN. Root of a container usually does not. 0, a process
// invisible from here, is none.
func IsAdministrator(pid uint32) bool {
	if pid == 0 {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || effective(status)&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return false
	}
	own, errOwn := os.Readlink("/proc/self/ns/user")
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	return err == nil && errOwn == nil && its == own
}

func effective(status []byte) uint64 {
	_, rest, _ := bytes.Cut(status, []byte("\nCapEff:"))
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 64)
	if err != nil {
		return 0
	}
	return mask
}
