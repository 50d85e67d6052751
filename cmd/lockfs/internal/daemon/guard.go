package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockfs/cluster/process"
	"lockfs/cluster/session"
	"lockfs/fusefs"
	"lockfs/fusefs/answer"
	"lockfs/fusefs/estate"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/hostinfo"
)

// Descriptors that a guard is started with. In place of one that there is none of, it has /dev/null.
const (
	guardAlive   = 3 // ends when the process of the mount has
	guardDevice  = 4
	guardAbort   = 5
	guardJournal = 6
	guardEstate  = 7
	guardShown   = 8
	guardNext    = 9 // where the next process of the mount asks for all that
	guardToken   = 10
	guardWatched = 11 // a pidfd of the process of the mount
)

const (
	// guardInterval is how often a guard looks at the process of the mount, and dyingInterval after how long it looks again at one that was
	// ending.
	guardInterval = time.Second
	dyingInterval = 500 * time.Millisecond
	// reapLimit is how long whoever started the process of the mount may take to note that it has ended.
	reapLimit = time.Second
	// guardPause is between two attempts to start a guard.
	guardPause = time.Second
)

// guardKeeper sees to it that there is a guard.
type guardKeeper struct {
	token *os.File // a pipe with one byte, see guard.take
	give  *os.File // its other end until that is there; nil: it is

	mu      sync.Mutex
	running *guardProcess // nil: none
	ended   bool          // there is to be none any more
}

// startGuard has a process watch this one for as long as it lives, which does what this one may leave undone (see guardCommand).
// One that ends is followed by another. It is beside the one of the program before, if that is there. One that waits for this process does
// what is to be done until the new one has the token.
func startGuard(client *session.Client, mounted *fusefs.Mounted, before *inheritance, logger *slog.Logger) (*guardKeeper, error) {
	keeper, socket, err := newGuardKeeper(before)
	if err != nil {
		return nil, fmt.Errorf("start the guard of the mount: %w", err)
	}
	guard := func() (*guardProcess, error) {
		listening := socket
		if socket = nil; listening == nil {
			var err error
			if listening, err = listenFor(client.SessionFile(), mounted.Connection().Dir); err != nil {
				logger.Warn("the mount ends if this process is killed, as the next one could not take it over", "error", err)
			}
		}
		return newGuard(client.SessionFile(), mounted, keeper.token, listening)
	}
	running, _, err := keeper.start(guard)
	if err != nil {
		return nil, fmt.Errorf("start the guard of the mount: %w", err)
	}
	go func() {
		for began := time.Now(); ; began = time.Now() {
			if err == nil {
				err = running.wait()
			}
			if !mounted.IsServed() || keeper.isEnded() {
				return
			}
			logger.Warn("the guard of the mount has ended, or could not be started; starting another", "error", err)
			time.Sleep(guardPause - time.Since(began))
			var wanted bool
			if running, wanted, err = keeper.start(guard); !wanted {
				return
			}
		}
	}()
	return keeper, nil
}

// newGuardKeeper goes on with the token of the guard that watches this process, and answers its socket; nil: none.
func newGuardKeeper(before *inheritance) (k *guardKeeper, socket *os.File, err error) {
	if before != nil && before.token != nil {
		return &guardKeeper{token: before.token}, before.socket, nil
	}
	k = new(guardKeeper)
	if k.token, k.give, err = os.Pipe(); err == nil && !before.isWaitedFor() {
		err = k.giveToken()
	}
	return k, nil, err
}

// giveToken gives the token to whoever takes it.
func (k *guardKeeper) giveToken() error {
	if k.give == nil {
		return nil
	}
	_, err := k.give.Write([]byte{0})
	err = errors.Join(err, k.give.Close())
	k.give = nil
	return err
}

func (k *guardKeeper) start(guard func() (*guardProcess, error)) (running *guardProcess, wanted bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil, false, nil
	}
	k.running, err = guard()
	return k.running, true, err
}

func (k *guardKeeper) isEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended
}

// stay answers the guard, which is the last one of this program; nil: there is none.
func (k *guardKeeper) stay() *guardProcess {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	return k.running
}

// end ends the guard for good, before it can take what follows for the end of this process.
func (k *guardKeeper) end() {
	k.mu.Lock()
	k.ended = true
	running := k.running
	k.mu.Unlock()
	if running == nil {
		return
	}
	_ = running.Process.Kill()
	<-running.over
}

type guardProcess struct {
	*exec.Cmd
	end    *os.File      // of the pipe of which the guard has the other
	socket *os.File      // of the guard; nil: none
	over   chan struct{} // closed when it has ended
}

// newGuard starts a guard with the socket that the next process of the mount connects to; nil: there is none.
func newGuard(journal *os.File, mounted *fusefs.Mounted, token, socket *os.File) (*guardProcess, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	orNull := func(file *os.File) *os.File {
		if file == nil {
			return null
		}
		return file
	}
	alive, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = alive.Close() }()
	connection := mounted.Connection()
	// The very program that runs now, though another may have taken its place.
	guard := exec.Command("/proc/self/exe", append([]string{"guard", strconv.Itoa(os.Getpid()),
		strconv.FormatUint(uint64(connection.Number), 10), connection.Dir, "--"}, os.Args...)...)
	guard.Args[0] = "lockfs"
	guard.ExtraFiles = []*os.File{alive}
	watched := process.OwnPidfd()
	defer func() { _ = watched.Close() }()
	for _, file := range []*os.File{connection.Device, connection.Abort, journal, mounted.Estate(), connection.Files()[2], socket, token, watched} {
		guard.ExtraFiles = append(guard.ExtraFiles, orNull(file))
	}
	if isUnattended() {
		guard.Stderr = os.Stderr // for whoever goes on
	}
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	g := &guardProcess{guard, end, socket, make(chan struct{})}
	if err := guard.Start(); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// wait waits for the end of a guard, which comes before that of this process only if somebody kills it.
func (g *guardProcess) wait() error {
	err := g.Wait()
	close(g.over)
	return errors.Join(err, g.close())
}

func (g *guardProcess) close() error {
	err := g.end.Close()
	if g.socket != nil {
		err = errors.Join(err, g.socket.Close())
	}
	return err
}

// farewell has the guard know that this process ends because it was told to, or cannot go on, and not by a crash.
func (k *guardKeeper) farewell() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.running != nil {
		_, _ = k.running.end.Write([]byte{0})
	}
}

func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "guard PID NUMBER DIR -- COMMAND...",
		Short:  "Guard a mount against the crash of its process; started by the mount itself",
		Hidden: true,
		Args:   cobra.MinimumNArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			number, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil {
				return err
			}
			_ = os.WriteFile("/proc/self/comm", []byte("lockfs"), 0) // it is called after the link that it was started by
			g := &guard{pid: pid, alive: os.NewFile(guardAlive, "alive"), token: os.NewFile(guardToken, "token"), process: inherited(guardWatched, "process"),
				leaving: leaving{
					command: args[3:], journal: inherited(guardJournal, "journal"), estate: inherited(guardEstate, "estate"),
					socket: inherited(guardNext, "socket"),
				}}
			g.connection = mountpoint.Inherit(args[2], uint32(number), []*os.File{
				os.NewFile(guardDevice, "device"), inherited(guardAbort, "abort"), inherited(guardShown, "shown"),
			})
			return g.run()
		},
	}
}

// guard is the process that does it.
type guard struct {
	leaving
	pid     int      // of the process of the mount
	process *os.File // its pidfd; nil: none
	alive   *os.File
	token   *os.File
}

// run waits until the process of a mount has ended, has the answers finished that it left, and ends the mount, unless another process is
// to go on: a thread of it may be left that waits for the lock of a directory, which a program has that waits for an answer.
func (g *guard) run() error {
	ended := func() error {
		if err := awaitEnd(g.alive, g.pid); err != nil {
			return err
		}
		return g.take()
	}
	goesOn := false
	var err error
	if g.journal != nil {
		err = session.FinishAnswers(ended, g.journal, func(answers [][]byte) {
			if goesOn = g.mayGoOn(answers); !goesOn {
				answer.Finish(g.connection.Device, answers)
			}
		})
	} else {
		err = ended()
	}
	if err != nil {
		return err // the process may be alive, and starts another guard then
	}
	if goesOn {
		left := hostinfo.BootTime()
		if isUnattended() && g.succeed() || !isUnattended() && g.giveToNext() {
			return nil
		}
		err = g.finishAfter(hostinfo.BootTime() - left)
	}
	g.removeSocket()
	if g.told {
		err = errors.Join(err, g.connection.Detach(true))
	}
	return errors.Join(err, g.connection.End())
}

// finishAfter is for a mount with which nobody goes on after all, for which it has waited so long. Who was told of a creation, and has asked for
// its attributes since, has no answer yet.
func (g *guard) finishAfter(pause time.Duration) error {
	over := func() error { return nil } // those that were to go on have served nobody
	return session.FinishAnswers(over, g.journal, func(answers [][]byte) { answer.FinishAfter(pause, g.connection.Device, answers) })
}

// take takes the token, of which there is one for all guards that watch a process: during an upgrade there may be two, of which one has
// to do all that, and either may. There is none as long as another one waits for that process.
func (g *guard) take() error {
	_, err := io.ReadFull(g.token, make([]byte, 1))
	return err
}

// mayGoOn gives the kernel the answers that a process left that has ended, and has it ask again what else was under way, if another
// process is to go on with the mount. Else nothing is done: nobody starts one in its place, it has ended because it was told to, the
// mount is gone, or nobody could go on.
func (g *guard) mayGoOn(answers [][]byte) bool {
	if !isUnattended() && !isSupervised() || g.saidFarewell() || g.connection.IsOver() {
		return false
	}
	if g.told = g.diedOfIt(); g.told {
		return false
	}
	if goesOn, err := estate.MayGoOn(g.estate, hostinfo.BootTime(), crashInterval); err != nil || !goesOn {
		return false
	}
	answer.Tell(g.connection.Device, answers) // before it is asked again, by other numbers
	return answer.AskAgain(g.connection.Device) == nil
}

// saidFarewell tells whether the process of the mount has said that it ends.
func (g *guard) saidFarewell() bool {
	ready := []unix.PollFd{{Fd: int32(g.alive.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n > 0 && ready[0].Revents&unix.POLLIN != 0
}

// diedOfIt tells whether the process of the mount was told to end and could not say farewell: the program had just been executed.
func (g *guard) diedOfIt() bool {
	return g.process != nil && slices.Contains(endSignals, os.Signal(process.EndSignal(g.process, reapLimit)))
}

// inherited answers a descriptor that this process was started with; nil if there is none.
func inherited(fd int, name string) *os.File {
	var st, null unix.Stat_t
	if unix.Fstat(fd, &st) != nil || unix.Stat(os.DevNull, &null) != nil || st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == null.Rdev {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}

// awaitEnd waits for the end of a process, when nobody has the other end of a pipe any more. One that is ending, or of which
// only a thread is left, for as long as it takes to look twice, does not get any further.
func awaitEnd(alive *os.File, pid int) error {
	for dying, interval := 0, guardInterval; dying < 2; {
		ready := []unix.PollFd{{Fd: int32(alive.Fd())}} // not for a farewell
		n, err := unix.Poll(ready, int(interval.Milliseconds()))
		switch {
		case err != nil && err != unix.EINTR:
			return os.NewSyscallError("poll", err)
		case n > 0:
			return nil
		case process.Exiting(pid):
			dying, interval = dying+1, dyingInterval
		default:
			dying, interval = 0, guardInterval
		}
	}
	return nil
}
