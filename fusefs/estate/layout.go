package estate

// Layout: words of 8 bytes in the order of this host; then what the mount is, in bytes; then two tables of slots. A slot begins with
// its key, which is written last and struck off first; 0: it is free.
const (
	magic = 0x3274736573666b6c // "lkfsest2"

	atMagic      = 0
	atLength     = 8  // of what the mount is
	atIncomplete = 16 // not 0: something had no room
	atCrashes    = 24 // when processes of the mount ended unasked, on CLOCK_BOOTTIME; 0: none
	mostCrashes  = 10

	atSeen    = 128                     // where the text begins of what was seen, and in the upper half how long it is
	atText    = atNames + room*mostName // the first
	atOther   = atText + mostText       // and another, for what replaces it
	mostText  = 1 << 30                 // as sparse as the rest
	fullText  = 4                       // times as long as it was at first, and
	shortText = 1 << 20

	atMount = 4096
	atFiles = 64 << 10 // handle, inode, session of its locks, length of its name
	atLocks = atFiles + room*slot
	size    = atLocks + room*slot // most of it is never touched, and takes no memory

	atNames  = size // a place for each file
	mostName = 1024

	slot = 32
	room = 1 << 17 // more than a session may have locks
)

// Offsets in a slot of a lock.
const (
	lockState  = 0 // its key: lockIsThere, with the kind in its upper half
	lockOwner  = 8
	lockInode  = 16
	lockHandle = 24

	lockIsThere = 1
)

// In place of the handle through which locks were taken.
const (
	Released = 0          // the owner is to have none any more, and the cluster may not know yet
	Lost     = ^uint64(0) // likewise, and somebody may rely on them
)
