package daemon

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// handoverVariable says with which descriptors a program is started that goes on with a mount: those of the state, of the session file, and of the
// connection, by comma; -1 in place of one that there is not. After them comes, if a guard process has started it, that of a
// pipe by which the guard waits until another one is there; or, if it takes the place of a program in the same process, those of the
// pipe whose end is the end of that process for its guard, of the token of all its guards and of the guard's socket, and after a semicolon
// the guard's pid.
const handoverVariable = "LOCKFS_HANDOVER"

// ledVariable is for a program that takes the place of a server: the term in which that led (cluster.Config.ExpiredLeaseTerm). One that is left by
// a program which does not know it is of no use and does no harm: nobody leads twice in a term.
const ledVariable = "LOCKFS_HANDOVER_LED"

// toldToEndVariable is set if the program before was told to end while it handed over.
const toldToEndVariable = "LOCKFS_TOLD_TO_END"

// What a process says to the guard of the one before. One that watches it knows only of the latter, see sayFarewell.
const (
	anotherGuard = 0
	toldToEnd    = 1
)

// endSignals end the daemon.
var endSignals = []os.Signal{unix.SIGINT, unix.SIGTERM}

// handedOver is the variable.
func handedOver(fds []int) string {
	var words []string
	for _, fd := range fds {
		words = append(words, strconv.Itoa(fd))
	}
	return handoverVariable + "=" + strings.Join(words, ",")
}

var errToldToEnd = errors.New("the process that went on was told to end")

// hear waits until a process has another guard. The error says that it has not: it ended before, or (errToldToEnd) nobody is to go on.
func hear(from io.Reader) error {
	said := make([]byte, 1)
	if _, err := io.ReadFull(from, said); err != nil {
		return err
	}
	if said[0] == toldToEnd {
		return errToldToEnd
	}
	return nil
}
