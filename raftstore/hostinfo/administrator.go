package hostinfo

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// IsAdministrator reports whether a process or thread may administer this host as this process sees it: it is in the user namespace of this
// process and has CAP_SYS_ADMIN. Root of a container has not, mostly. One that cannot be seen from here (0) is none.
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

// effective returns the capabilities in a status of proc_pid_status(5).
func effective(status []byte) uint64 {
	_, rest, _ := bytes.Cut(status, []byte("\nCapEff:"))
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 64)
	if err != nil {
		return 0
	}
	return mask
}
