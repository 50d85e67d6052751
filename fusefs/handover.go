package fusefs

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/hostinfo"
)

// Handover is the state of a mount without a server: its programs wait until a process serves it again.
type Handover struct {
	State []byte     // for [TakeOver]
	Files []*os.File // likewise; nil for a missing one

	mounted *Mounted
	given   [][]byte
}

// savePause is between two checks for the end of background work.
const savePause = time.Millisecond

// HandOver stops serving the mount, after all requests have answers or the limit is over. It returns the
// state for another process; meanwhile requests wait in the kernel. After an error this process serves the
// mount as before.
func (m *Mounted) HandOver(limit time.Duration) (*Handover, error) {
	if m.isOver() {
		return nil, errors.New("it is not mounted any more")
	}
	began, end := hostinfo.BootTime(), time.Now().Add(limit)
	// A notification may wait for a program, and the program for an answer: neither would end.
	if !m.following.end(limit) {
		m.following = m.follow()
		return nil, errors.New("a notification of a removal hangs in the kernel")
	}
	given, err := m.server.Stop(time.Until(end))
	m.serving.Wait()
	h := &Handover{mounted: m, given: given, Files: m.connection.Files()}
	if err == nil {
		h.State, err = m.state(given, began, end)
	}
	if err != nil {
		h.Resume()
		return nil, err
	}
	return h, nil
}

// Resume serves the mount again in this process, unless the kernel has ended the connection.
func (h *Handover) Resume() {
	if h.mounted.IsServed() {
		h.mounted.begin(h.given)
	}
}

// state waits until the cluster has recorded all closed files.
func (m *Mounted) state(given [][]byte, began time.Duration, end time.Time) ([]byte, error) {
	for ; m.fs.insisting.Load() > 0; time.Sleep(savePause) {
		if time.Now().After(end) {
			return nil, errUntold
		}
	}
	if m.isOver() {
		return nil, errors.New("it was unmounted")
	}
	s, err := m.fs.save()
	if err != nil {
		return nil, err
	}
	s.Dir, s.Number, s.Init, s.Requests, s.Began = []byte(m.dir), m.connection.Number, m.init, given, began
	return json.Marshal(s)
}

// TakeOver continues with a mount from another process, after its HandOver or its crash ([Mounted.Estate]).
// After a crash, the caller must first have called [answer.AskAgain]. answers are those which the kernel may
// have got from the crashed process. TakeOver calls ready before it serves. After an error no process serves
// the mount.
func TakeOver(data []byte, files []*os.File, answers [][]byte, ops Operator, opts Options, ready func(*Mounted) error) (*Mounted, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s, err := parseState(data)
	if crashstate.Is(data) {
		s, err = stateOf(data, answers)
	}
	if err != nil {
		return nil, fmt.Errorf("take a mount over: %w", err)
	}
	m, err := newMounted(mountpoint.Inherit(string(s.Dir), s.Number, files), s.Init, ops, opts, s.crashes)
	if err == nil {
		err = m.fs.restore(s)
	}
	if err == nil {
		err = ready(m)
	}
	if err != nil {
		return nil, fmt.Errorf("take the mount at %s over: %w", m.dir, err)
	}
	m.begin(s.Requests)
	opts.Logger.Info("went on with the mount", "dir", m.dir, "pause", hostinfo.BootTime()-s.Began)
	return m, nil
}

// Fits returns nil if this program can take over a mount with this state. It changes nothing.
func Fits(data []byte) error {
	s, err := parseState(data)
	if err != nil {
		return err
	}
	return s.Init.Fits(mountOptions(Options{Logger: slog.Default()}))
}

// Offer returns a state for [Fits], without the files of programs.
func (m *Mounted) Offer() ([]byte, error) {
	return json.Marshal(&state{Version: stateVersion, Dir: []byte(m.dir), Number: m.connection.Number, Init: m.init})
}
