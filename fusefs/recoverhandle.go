package fusefs

import "lockfs/raftstore/ids"

// file returns an open file. A crashed process may have left a handle outside its crash state: the guard
// process has answered its creation, and no program has used it.
func (fs *fileSystem) file(number, node uint64) (handle *fileHandle, found bool) {
	handle, found = fs.files.Get(number)
	if found || number == 0 || number > fs.crashed {
		return handle, found
	}
	fs.finding.Lock()
	defer fs.finding.Unlock()
	if handle, found = fs.files.Get(number); !found {
		handle = &fileHandle{inode: fs.inodes.use(ids.Inode(node))}
		fs.open(number, handle)
	}
	return handle, true
}

// keep records an open file in the crash state, for TakeOver after a crash.
func (fs *fileSystem) keep(number uint64, handle *fileHandle) {
	handle.locks.KeepIn(number, fs.estate.Opened(number, handle.inode.ino, packNames(handle.by)))
	handle.keepName = func(name []byte) { fs.estate.Named(number, name) }
}

// open registers an open file under its number.
func (fs *fileSystem) open(number uint64, handle *fileHandle) {
	fs.keep(number, handle)
	fs.files.AddAs(number, handle)
}
