package fusefs

import "lockfs/raftstore/ids"

// file answers an open file. One that was left by a process that was killed, and is not in its estate, is that of a creation which
// the guard process told of: nothing was done with it yet.
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

// keep has an open file known to whoever goes on should this process be killed.
func (fs *fileSystem) keep(number uint64, handle *fileHandle) {
	handle.locks.KeepIn(number, fs.estate.Opened(number, handle.inode.ino, packNames(handle.by)))
	handle.keepName = func(name []byte) { fs.estate.Named(number, name) }
}

// open gives an open file its number.
func (fs *fileSystem) open(number uint64, handle *fileHandle) {
	fs.keep(number, handle)
	fs.files.AddAs(number, handle)
}
