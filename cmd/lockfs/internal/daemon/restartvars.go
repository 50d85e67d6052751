package daemon

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// handoverVariable has the file descriptors for a program which takes over a mount, by comma: state,
// session file and FUSE connection, with -1 for missing ones. A guard adds a pipe, through which it waits
// for the next guard. An upgrade in the same process adds a pipe for its guard, closed at the end of the
// process. It also adds the token of its guards, the guard's socket, and after a semicolon the guard's
// PID.
const handoverVariable = "LOCKFS_HANDOVER"

// ledVariable has the raft term in which the earlier program of this server was leader
// (cluster.Config.ExpiredLeaseTerm). A stale value is harmless, because a server leads at most once in a
// term.
const ledVariable = "LOCKFS_HANDOVER_LED"

// toldToEndVariable is set if a signal came during the handover.
const toldToEndVariable = "LOCKFS_TOLD_TO_END"

// Messages from a process to the earlier guard. A guard of this process only knows the last one, see
// announceEnd.
const (
	anotherGuard = 0
	toldToEnd    = 1
)

// endSignals end the daemon.
var endSignals = []os.Signal{unix.SIGINT, unix.SIGTERM}

// handedOver returns the value of handoverVariable.
func handedOver(fds []int) string {
	var words []string
	for _, fd := range fds {
		words = append(words, strconv.Itoa(fd))
	}
	return handoverVariable + "=" + strings.Join(words, ",")
}

var errToldToEnd = errors.New("the next process of the mount received a signal to end")

// awaitReady waits until a process has another guard. It returns an error if the process has ended, and
// errToldToEnd after a signal.
func awaitReady(from io.Reader) error {
	said := make([]byte, 1)
	if _, err := io.ReadFull(from, said); err != nil {
		return err
	}
	if said[0] == toldToEnd {
		return errToldToEnd
	}
	return nil
}
