package control

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/hostinfo"
)

// Budgets count the users' open files of the directory, and the bytes kept for them. Nil pools disable the
// budgets.
type Budgets struct {
	Files *budget.Pool
	Bytes *budget.Pool
}

// openFiles counts the open files of users, by the numbers of their handles.
type openFiles struct {
	Budgets
	mu      sync.Mutex
	charged map[uint64]openFile
}

// openFile is the use of a user's budgets by one open file.
type openFile struct {
	user     budget.User
	standing budget.Standing
	bytes    uint64
}

func newOpenFiles(b Budgets) *openFiles {
	return &openFiles{Budgets: b, charged: make(map[uint64]openFile)}
}

// take charges a caller for a file to open. An error means a budget without room; then take charges nothing.
func (o *openFiles) take(header *fuse.InHeader, h handle) (f openFile, err error) {
	if o.Files == nil {
		return f, nil
	}
	f = openFile{user: budget.User{UID: hostinfo.BudgetUID(header.Uid)}}
	if content, isSnapshot := h.(snapshot); isSnapshot {
		f.bytes = uint64(len(content))
	}
	err = o.takeAs(f)
	if err != nil && header.Uid == 0 && hostinfo.IsAdministrator(header.Pid) {
		f.standing = budget.Privileged
		err = o.takeAs(f)
	}
	return f, err
}

func (o *openFiles) takeAs(f openFile) error {
	if err := o.Files.Take(f.user, 1, f.standing); err != nil {
		return err
	}
	if err := o.Bytes.Take(f.user, f.bytes, f.standing); err != nil {
		o.Files.Give(f.user, 1, f.standing)
		return err
	}
	return nil
}

// opened records the number of a file.
func (o *openFiles) opened(fh uint64, f openFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.charged[fh] = f
}

// closed ends the charge for a file.
func (o *openFiles) closed(fh uint64) {
	o.mu.Lock()
	f, found := o.charged[fh]
	delete(o.charged, fh)
	o.mu.Unlock()
	if found && o.Files != nil {
		o.Files.Give(f.user, 1, f.standing)
		o.Bytes.Give(f.user, f.bytes, f.standing)
	}
}

// userOf returns the user charged for a file.
func (o *openFiles) userOf(fh uint64) uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.charged[fh].user.UID
}

// restored charges for a file opened by an earlier process of the mount, also without room.
func (o *openFiles) restored(fh uint64, uid uint32, h handle) {
	if o.Files == nil {
		return
	}
	f := openFile{user: budget.User{UID: uid}, standing: budget.Replacing}
	if content, isSnapshot := h.(snapshot); isSnapshot {
		f.bytes = uint64(len(content))
	}
	if o.takeAs(f) == nil {
		o.opened(fh, f)
	}
}
