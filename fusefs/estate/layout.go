package estate

// Layout: words of 8 bytes in the byte order of this host; then the description of the mount, in bytes; then
// two tables of slots. The key at the begin of a slot is written last and cleared first; 0: free.
const (
	magic = 0x3274736573666b6c // "lkfsest2"

	atMagic      = 0
	atLength     = 8  // of the mount's description
	atIncomplete = 16 // not 0: a table or name was full
	atCrashes    = 24 // crash times, on CLOCK_BOOTTIME; 0: none
	mostCrashes  = 10

	atSeen    = 128                     // begin of the observations; upper half: their length
	atText    = atNames + room*mostName // the first text
	atOther   = atText + mostText       // the other, for its replacement
	mostText  = 1 << 30                 // sparse
	fullText  = 4                       // a text is full at so many times its first length, at least shortText
	shortText = 1 << 20

	atMount = 4096
	atFiles = 64 << 10 // handle, inode, session of its locks, length of its name
	atLocks = atFiles + room*slot
	size    = atLocks + room*slot // untouched pages take no memory

	atNames  = size // a place for each file
	mostName = 1024

	slot = 32
	room = 1 << 17 // more than the locks of a session
)

// Offsets in a slot of a lock.
const (
	lockState  = 0 // its key: lockIsThere, and the kind in the upper half
	lockOwner  = 8
	lockInode  = 16
	lockHandle = 24

	lockIsThere = 1
)

// Instead of the handle of the locks.
const (
	Released = 0          // the owner is to have none, and the cluster may not know yet
	Lost     = ^uint64(0) // likewise, and programs may rely on them
)
