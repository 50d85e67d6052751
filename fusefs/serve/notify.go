package serve

import (
	"encoding/binary"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const notifyDelete = 6 // FUSE_NOTIFY_DELETE

// DeleteNotify tells the kernel that a name was removed from a directory. It may wait for the directory's
// lock, so call it neither from a handler nor under a lock.
func (s *Server) DeleteNotify(parent, child uint64, name string) error {
	body := struct {
		Parent, Child uint64
		Length, _     uint32
	}{Parent: parent, Child: child, Length: uint32(len(name))}
	header := fuse.OutHeader{Status: notifyDelete}
	header.Length = uint32(binary.Size(header) + binary.Size(body) + len(name) + 1)
	message, _ := binary.Append(nil, binary.NativeEndian, header)
	message, _ = binary.Append(message, binary.NativeEndian, body)
	return s.write(append(append(message, name...), 0))
}
