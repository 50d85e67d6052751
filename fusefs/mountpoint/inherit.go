package mountpoint

import "os"

// Files returns the files for another process; nil for an unavailable one.
func (c *Connection) Files() []*os.File { return []*os.File{c.Device, c.Abort, c.shown} }

// Inherit returns the connection for files of another process, in the order of [Connection.Files].
func Inherit(dir string, number uint32, files []*os.File) *Connection {
	return &Connection{Dir: dir, Number: number, Device: files[0], Abort: files[1], shown: files[2]}
}
