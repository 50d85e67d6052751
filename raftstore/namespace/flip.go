package namespace

import (
	"lockfs/raftstore/fault"
	"lockfs/raftstore/ids"
)

// flipBit changes the memory of this node behind everybody's back, if that is the mistake which it was built to make: a bit in the
// content of the first file that has one.
func (ns *Namespace) flipBit() {
	if !fault.FlipBit {
		return
	}
	ns.tree.inodes.Scan(func(_ ids.Inode, in *inode) bool {
		if in.isFile() && len(in.content) > 0 {
			in.content[0] |= 0x80
			return false
		}
		return true
	})
}
