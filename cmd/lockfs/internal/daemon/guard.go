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
	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/mountpoint"
	"lockfs/fusefs/orphanreply"
	"lockfs/raftstore/hostinfo"
)

// File descriptors of a guard. Missing ones are /dev/null.
const (
	guardAlive   = 3 // ends with the process of the mount
	guardDevice  = 4
	guardAbort   = 5
	guardJournal = 6
	guardEstate  = 7
	guardShown   = 8
	guardNext    = 9 // where the next process of the mount connects
	guardToken   = 10
	guardWatched = 11 // pidfd of the process of the mount
)

const (
	// guardInterval is the interval between checks of the mount's process, and dyingInterval the one for a
	// process that is exiting.
	guardInterval = time.Second
	dyingInterval = 500 * time.Millisecond
	// reapLimit limits the wait for the parent of the mount's process to reap it.
	reapLimit = time.Second
	// guardPause is the pause between attempts to start a guard.
	guardPause = time.Second
)

// guardClient keeps a guard running.
type guardClient struct {
	token *os.File // a pipe with one byte, see guard.take
	give  *os.File // its writing end until the byte is there; then nil

	mu      sync.Mutex
	running *guardProcess // nil: none
	ended   bool          // no further guard
}

// startGuard starts a process to watch this one and to finish its work after a crash (see guardCommand), and
// restarts it when it ends. During an upgrade the guard of the earlier program may still run. A guard for
// this process does the work until the new one has the token.
func startGuard(client *session.Client, mounted *fusefs.Mounted, before *handoffState, logger *slog.Logger) (*guardClient, error) {
	keeper, socket, err := newGuardClient(before)
	if err != nil {
		return nil, fmt.Errorf("start the guard of the mount: %w", err)
	}
	guard := func() (*guardProcess, error) {
		listening := socket
		if socket = nil; listening == nil {
			var err error
			if listening, err = listenFor(client.SessionFile(), mounted.Connection().Dir); err != nil {
				logger.Warn("the next process cannot take over the mount, so the mount ends if this process is killed", "error", err)
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
			logger.Warn("the guard of the mount has ended or did not start; starting another", "error", err)
			time.Sleep(guardPause - time.Since(began))
			var wanted bool
			if running, wanted, err = keeper.start(guard); !wanted {
				return
			}
		}
	}()
	return keeper, nil
}

// newGuardClient takes over the token of the current guard, and returns its socket, or nil.
func newGuardClient(before *handoffState) (k *guardClient, socket *os.File, err error) {
	if before != nil && before.token != nil {
		return &guardClient{token: before.token}, before.socket, nil
	}
	k = new(guardClient)
	if k.token, k.give, err = os.Pipe(); err == nil && !before.isWaitedFor() {
		err = k.giveToken()
	}
	return k, nil, err
}

// giveToken makes the token available.
func (k *guardClient) giveToken() error {
	if k.give == nil {
		return nil
	}
	_, err := k.give.Write([]byte{0})
	err = errors.Join(err, k.give.Close())
	k.give = nil
	return err
}

func (k *guardClient) start(guard func() (*guardProcess, error)) (running *guardProcess, wanted bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil, false, nil
	}
	k.running, err = guard()
	return k.running, true, err
}

func (k *guardClient) isEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended
}

// stay returns the last guard of this program, or nil.
func (k *guardClient) stay() *guardProcess {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	return k.running
}

// end ends the guard for good, before it can mistake an upgrade for the end of this process.
func (k *guardClient) end() {
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
	end    *os.File      // of the pipe to the guard
	socket *os.File      // of the guard, or nil
	over   chan struct{} // closed at its end
}

// newGuard starts a guard with the socket for the next process of the mount; nil: no socket.
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
	// This program, even if its file has been replaced.
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
		guard.Stderr = os.Stderr // for the next process
	}
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // not ended by Ctrl-C
	g := &guardProcess{guard, end, socket, make(chan struct{})}
	if err := guard.Start(); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// wait waits for the end of a guard, which only precedes the end of this process if it is killed.
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

// announceEnd tells the guard about an intended end of this process, in contrast to a crash.
func (k *guardClient) announceEnd() {
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
			_ = os.WriteFile("/proc/self/comm", []byte("lockfs"), 0) // the default is the name of the link
			g := &guard{pid: pid, alive: os.NewFile(guardAlive, "alive"), token: os.NewFile(guardToken, "token"), process: inherited(guardWatched, "process"),
				leaving: leaving{
					command: args[3:], journal: inherited(guardJournal, "journal"), estate: inherited(guardEstate, "crashstate"),
					socket: inherited(guardNext, "socket"),
				}}
			g.connection = mountpoint.Inherit(args[2], uint32(number), []*os.File{
				os.NewFile(guardDevice, "device"), inherited(guardAbort, "abort"), inherited(guardShown, "shown"),
			})
			return g.run()
		},
	}
}

// guard is the guard of a mount.
type guard struct {
	leaving
	pid     int      // of the process of the mount
	process *os.File // its pidfd, or nil
	alive   *os.File
	token   *os.File
}

// run waits for the end of the mount's process, finishes its replies, and then either waits for the next
// process or ends the mount. A thread may be left, waiting for the lock of a directory held by a program
// which itself waits for a reply.
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
				orphanreply.Finish(g.connection.Device, answers)
			}
		})
	} else {
		err = ended()
	}
	if err != nil {
		return err // the process may be alive; it then starts another guard
	}
	if goesOn {
		left := hostinfo.BootTime()
		if isUnattended() && g.succeed() || !isUnattended() && g.sendState() {
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

// finishAfter finishes a mount without a next process, after a pause. A program may still wait for the
// attributes of a file it has created.
func (g *guard) finishAfter(pause time.Duration) error {
	over := func() error { return nil } // the next processes have served no program
	return session.FinishAnswers(over, g.journal, func(answers [][]byte) { orphanreply.FinishAfter(pause, g.connection.Device, answers) })
}

// take takes the token, of which there is one for all guards of a process: during an upgrade there may be
// two, and one of them has to do the work. There is none while another guard waits for the process.
func (g *guard) take() error {
	_, err := io.ReadFull(g.token, make([]byte, 1))
	return err
}

// mayGoOn gives the kernel the replies of a dead process and makes it resend other requests, if another
// process is going to take over the mount. It does nothing without a supervisor, after an intended end,
// without the mount, or if a takeover is impossible.
func (g *guard) mayGoOn(answers [][]byte) bool {
	if !isUnattended() && !isSupervised() || g.endAnnounced() || g.connection.IsOver() {
		return false
	}
	if g.told = g.diedOfIt(); g.told {
		return false
	}
	if goesOn, err := crashstate.MayGoOn(g.estate, hostinfo.BootTime(), crashInterval); err != nil || !goesOn {
		return false
	}
	orphanreply.Tell(g.connection.Device, answers) // before resending, which changes the numbers
	return orphanreply.AskAgain(g.connection.Device) == nil
}

// endAnnounced reports whether the process of the mount has announced its end.
func (g *guard) endAnnounced() bool {
	ready := []unix.PollFd{{Fd: int32(g.alive.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n > 0 && ready[0].Revents&unix.POLLIN != 0
}

// diedOfIt reports whether a signal ended the process of the mount before it could announce its end, right
// after exec.
func (g *guard) diedOfIt() bool {
	return g.process != nil && slices.Contains(endSignals, os.Signal(process.EndSignal(g.process, reapLimit)))
}

// inherited returns a file descriptor of this process's start, or nil.
func inherited(fd int, name string) *os.File {
	var st, null unix.Stat_t
	if unix.Fstat(fd, &st) != nil || unix.Stat(os.DevNull, &null) != nil || st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == null.Rdev {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}

// awaitEnd waits for the end of a process, which closes a pipe. A process that is exiting, or has only one
// thread left, counts as ended after two checks.
func awaitEnd(alive *os.File, pid int) error {
	for dying, interval := 0, guardInterval; dying < 2; {
		ready := []unix.PollFd{{Fd: int32(alive.Fd())}} // announcements do not count
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
