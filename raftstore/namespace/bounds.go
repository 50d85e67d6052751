package namespace

// RootIno is the inode number of the root directory.
const RootIno = 1

// Limits of the namespace. SetLimits changes DefaultMaxInodes and DefaultMaxBytes.
const (
	MaxContent       = 256 << 10 // bytes in a file
	MaxName          = 255       // bytes in a name
	MaxTarget        = 4095      // bytes in the target of a symbolic link
	MaxDepth         = 64        // directories below one another
	MaxXattrs        = 4 << 10   // bytes of names and values of an inode's extended attributes
	MaxLinks         = 65000     // names of an inode
	DefaultMaxInodes = 4 << 20
)
