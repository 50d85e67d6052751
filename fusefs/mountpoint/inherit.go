package mountpoint

import "os"

// Files are the connection's, for a process that goes on with it; nil in place of one that could not be had.
func (c *Connection) Files() []*os.File { return []*os.File{c.Device, c.Abort, c.shown} }

// Inherit is for a process that was given the files of a connection, in the order of [Connection.Files].
func Inherit(dir string, number uint32, files []*os.File) *Connection {
	return &Connection{Dir: dir, Number: number, Device: files[0], Abort: files[1], shown: files[2]}
}
