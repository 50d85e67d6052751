package conformance

// Difference is a deviation from a local file system. The manual lists each under limits (lockfs help
// limits).
type Difference string

// All known differences.
const (
	SmallFiles    Difference = "files are at most 256 KiB (EFBIG), and nothing is done of a write that goes beyond"
	Depth         Difference = "directories are at most 64 deep (ENAMETOOLONG)"
	ControlName   Difference = "the root has a directory .lockfs that no listing shows and nobody can change (EPERM)"
	NoDevices     Difference = "device nodes cannot be made (EPERM)"
	NoTmpfile     Difference = "O_TMPFILE is refused (EOPNOTSUPP)"
	NoMapping     Difference = "shared mappings are refused (ENODEV)"
	NoWhiteout    Difference = "RENAME_WHITEOUT is refused (EINVAL)"
	OnlyUserXattr Difference = "extended attributes are those of user.*, without ACLs (EOPNOTSUPP)"
	SmallXattr    Difference = "extended attributes are at most 4 KiB a file, with their names (ENOSPC)"
	LockXattr     Difference = "a lock has attributes user.lockfs.*, which are not listed, and which setting and removing does not change"
	FewIoctls     Difference = "there are no ioctls of files, such as those of chattr (ENOTTY)"
	Pollable      Difference = "epoll takes files, which are always ready"
	AlwaysAppend  Difference = "O_APPEND appends whatever the flags of the write say (RWF_NOAPPEND)"
	YearsAround   Difference = "times are within 292 years of 1970; others become the nearest"
	NoFanotify    Difference = "fanotify cannot watch all of the file system by file handles (ENODEV)"

	// Between two mounts, such as those of two hosts:

	AppendOnce      Difference = "RWF_APPEND writes at the end that this host saw last; O_APPEND at the end"
	MovedElsewhere  Difference = "the .. of a directory that another host moves leads where it was, until its new path is looked at"
	NamesOnly       Difference = "fifos and sockets connect processes of one host"
	LeaseElsewhere  Difference = "leases (F_SETLEASE) are within one host"
	UnseenElsewhere Difference = "inotify tells only what is done on its host, but for a watched file that is removed on another"
)

// Differences are the differences met by the cases of a set.
var Differences = map[Set][]Difference{
	All: {
		SmallFiles, Depth, ControlName, NoDevices, NoTmpfile, NoMapping, NoWhiteout, OnlyUserXattr, SmallXattr, LockXattr,
		FewIoctls, Pollable, AlwaysAppend, YearsAround, NoFanotify,
	},
	Between: {AppendOnce, MovedElsewhere, NamesOnly, LeaseElsewhere, UnseenElsewhere},
}
