package fusefs

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"lockfs/fusefs/estate"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/hostinfo"
)

// Handover is a mount that is not served: its programs wait until it is again, by whomever.
type Handover struct {
	State []byte     // for [TakeOver]
	Files []*os.File // likewise; nil in place of one that there is not

	mounted *Mounted
	given   [][]byte
}

// savePause is between two looks whether all is done that the mount does by itself.
const savePause = time.Millisecond

// HandOver stops serving the mount once all that was asked is answered, which is to take no longer than the limit, and answers what
// another process needs to go on. After an error the mount is served as before. Meanwhile requests wait in the kernel.
func (m *Mounted) HandOver(limit time.Duration) (*Handover, error) {
	if m.isOver() {
		return nil, errors.New("it is not mounted any more")
	}
	began, end := hostinfo.BootTime(), time.Now().Add(limit)
	// A notification that waits for a program which waits for an answer would wait for ever.
	if !m.following.end(limit) {
		m.following = m.follow()
		return nil, errors.New("the kernel is being told of a removal, and does not take it")
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

// Resume serves the mount again, in this process, unless the kernel has let go of it meanwhile.
func (h *Handover) Resume() {
	if h.mounted.IsServed() {
		h.mounted.begin(h.given)
	}
}

// state waits until the cluster knows of all that was closed.
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

// TakeOver goes on with a mount that another process has handed over, or left when it was killed ([Mounted.Estate]): then the
// kernel has been told to ask again what was under way, and answers that it may have had from that process. ready is called before
// anything is served. After an error nobody serves it.
func TakeOver(data []byte, files []*os.File, answers [][]byte, ops Operator, opts Options, ready func(*Mounted) error) (*Mounted, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s, err := parseState(data)
	if estate.Is(data) {
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

// Fits tells whether this program could take a mount over: nil if so. It reads the state, and changes nothing.
func Fits(data []byte) error {
	s, err := parseState(data)
	if err != nil {
		return err
	}
	return s.Init.Fits(mountOptions(Options{Logger: slog.Default()}))
}

// Offer is a state without what programs have, for [Fits].
func (m *Mounted) Offer() ([]byte, error) {
	return json.Marshal(&state{Version: stateVersion, Dir: []byte(m.dir), Number: m.connection.Number, Init: m.init})
}
