package namespace

import (
	"syscall"
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// RootIno is the inode number of the root directory.
const RootIno = 1

// Limits of the namespace. DefaultMaxInodes can be changed by a SetLimits command, like those of bytes (DefaultMaxBytes).
const (
	MaxContent       = 256 << 10 // bytes in a file
	MaxName          = 255       // bytes in a name
	MaxTarget        = 4095      // bytes in the target of a symbolic link
	MaxDepth         = 64        // directories below one another
	MaxXattrs        = 4 << 10   // bytes of names and values of an inode's extended attributes
	MaxLinks         = 65000     // names of an inode
	DefaultMaxInodes = 4 << 20
)

// rootMode lets every user make locks and only their owners remove them, as in /run/lock.
const rootMode = syscall.S_IFDIR | 0o1777

// Namespace is the replicated state machine. It is not safe for concurrent use; [FSM] guards it.
type Namespace struct {
	index       uint64 // of the last command applied
	time        int64  // cluster time of that command; never goes back
	nextIno     uint64
	nextCookie  uint64
	limits      limits
	maxSessions uint64

	inodes        *btree.Map[uint64, *inode]
	byName        *btree.BTreeG[*entry] // by parent, name
	byCookie      *btree.BTreeG[*entry] // by parent, cookie
	orphans       *btree.Map[uint64, *orphan]
	expiring      *btree.BTreeG[*orphan] // those that are not pinned, by removal index and inode number
	sessions      *btree.Map[uint64, *session]
	endedSessions *btree.Map[uint64, uint64] // index at which it ended -> id
	endedKept     int                        // those, and their replies
	replies       *btree.BTreeG[*reply]      // by session, seq
	members       *btree.Map[string, *storepb.Member]

	byIno     *btree.BTreeG[*entry] // by inode, parent, name
	byDue     *btree.BTreeG[*entry] // those that have one, by when they are due
	byProcess *btree.BTreeG[held]
	byMaker   *btree.BTreeG[made]
	byPending *btree.BTreeG[*entry]             // those that no event has told of yet, by until when
	lockFiles map[uint64]int                    // how many files of a directory are locks
	rules     *btree.Map[string, *storepb.Rule] // by pattern
	hosts     *btree.Map[string, *host]         // by name

	events      *btree.Map[uint64, *storepb.Event] // the last ones, by number
	lastEvent   uint64
	eventCounts *btree.Map[string, uint64]

	locks     *advisory.Table
	removed   []Removal // by the last command; not part of the state
	lockDelay int64

	used      usage             // by inodes and names, but for those that are forgotten soon
	usedBy    map[uint32]*usage // the same, by uid of the owner
	forgotten uint64            // bytes of inodes that are forgotten soon
}

// inode is never modified once it is in a tree.
type inode struct {
	ino     uint64
	mode    uint32 // type and permission bits
	nlink   uint32
	uid     uint32
	gid     uint32
	parent  uint64 // of a directory
	atime   int64
	mtime   int64
	ctime   int64
	btime   int64
	version uint64 // index of the command that set the content
	changed uint64 // index of the command that set ctime
	content []byte // of a file; target of a symbolic link
	xattrs  []*storepb.Xattr
	facts   *facts       // what the content says; nil if it is of no format
	gone    *staleness   // how it is known that the process of the facts is gone; nil: it is not
	host    sharedString // that created it, or wrote to it last; facts have the same string

	unlisted     bool   // bookkeeping of lockfs itself, and no lock
	kernelLocked bool   // it has or had an advisory lock, or a request for one
	evidence     string // why a content of no format, or a target, can be judged; empty: it cannot
}

// entry is one name in a directory. It is never modified once it is in a tree.
type entry struct {
	parent uint64
	name   string
	ino    uint64
	cookie uint64 // its place in listings; kept when another inode takes the name over
	made   uint64 // index of the command that gave the name its present inode

	exclusive bool     // it was made exclusively, and not replaced since
	lock      bool     // it is one, if it is a file's; see isLock
	maker     *maker   // nil unless a rule wants to know
	token     uint64   // index of the command that gave the name its present holder
	acquired  int64    // time of that command
	known     *facts   // of the holder, kept while the content does not tell; nil: it never told
	announced bool     // an event told that it was acquired
	pending   *pending // the event is to come; nil: none will
	stale     *staleness
	due       int64 // when lockfs finds it stale or removes it, with the rule for its path; 0: never
}

// Cookies of the two entries that every directory has; others are larger.
const (
	cookieSelf   = 1
	cookieParent = 2
)

// New makes an empty tree: a root directory that every user may write to.
func New() *Namespace {
	ns := emptyNamespace()
	ns.putInode(&inode{ino: RootIno, mode: rootMode, nlink: 2, parent: RootIno})
	return ns
}

func emptyNamespace() *Namespace {
	options := btree.Options{NoLocks: true}
	return &Namespace{
		nextIno:       RootIno + 1,
		nextCookie:    cookieParent + 1,
		maxSessions:   DefaultMaxSessions,
		inodes:        new(btree.Map[uint64, *inode]),
		byName:        btree.NewBTreeGOptions(lessByName, options),
		byCookie:      btree.NewBTreeGOptions(lessByCookie, options),
		orphans:       new(btree.Map[uint64, *orphan]),
		expiring:      btree.NewBTreeGOptions(lessByRemoval, options),
		sessions:      new(btree.Map[uint64, *session]),
		endedSessions: new(btree.Map[uint64, uint64]),
		replies:       btree.NewBTreeGOptions(lessReply, options),
		members:       new(btree.Map[string, *storepb.Member]),
		byIno:         btree.NewBTreeGOptions(lessByIno, options),
		byDue:         btree.NewBTreeGOptions(lessByDue, options),
		byProcess:     btree.NewBTreeGOptions(lessHeld, options),
		byMaker:       btree.NewBTreeGOptions(lessMade, options),
		byPending:     btree.NewBTreeGOptions(lessByPending, options),
		lockFiles:     make(map[uint64]int),
		rules:         new(btree.Map[string, *storepb.Rule]),
		hosts:         new(btree.Map[string, *host]),
		events:        new(btree.Map[uint64, *storepb.Event]),
		eventCounts:   new(btree.Map[string, uint64]),
		locks:         advisory.New(),
		usedBy:        make(map[uint32]*usage),
		lockDelay:     int64(DefaultLockDelay),
	}
}

func lessByName(a, b *entry) bool {
	if a.parent != b.parent {
		return a.parent < b.parent
	}
	return a.name < b.name
}

func lessByCookie(a, b *entry) bool {
	if a.parent != b.parent {
		return a.parent < b.parent
	}
	return a.cookie < b.cookie
}

func lessByIno(a, b *entry) bool {
	if a.ino != b.ino {
		return a.ino < b.ino
	}
	return lessByName(a, b)
}

func lessByPending(a, b *entry) bool {
	if a.pending.until != b.pending.until {
		return a.pending.until < b.pending.until
	}
	return lessByName(a, b)
}

func lessByDue(a, b *entry) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return lessByName(a, b)
}

// Apply does one command, the log entry with the given index, and answers its result. Commands come in
// the order of their indexes. The result belongs to the state: callers do not change it.
func (ns *Namespace) Apply(index uint64, cmd *storepb.Command) *storepb.Result {
	ns.index, ns.removed = index, nil
	ns.time = max(ns.time, fault.ApplyTime(cmd.GetTime()))
	ns.locks.Begin(ids.Index(ns.index), ns.time)
	ns.bearRoot()
	ns.dropExpiredOrphans()
	ns.dropExpiredSessions()
	ns.expireLocks()
	ns.locks.Expire()
	ns.announcePending()
	return ns.applyOnce(cmd)
}

// bearRoot gives the root directory the time of the first command that has one.
func (ns *Namespace) bearRoot() {
	root, found := ns.inodes.Get(RootIno)
	if !found || root.btime != 0 {
		return
	}
	born := *root
	born.atime, born.mtime, born.ctime, born.btime = ns.time, ns.time, ns.time, ns.time
	ns.putInode(&born)
}

// Index is the index of the last command applied.
func (ns *Namespace) Index() uint64 { return ns.index }

// Time is the cluster time of the last command applied.
func (ns *Namespace) Time() time.Time { return time.Unix(0, ns.time) }

// Inodes is the number of inodes, those without a name included.
func (ns *Namespace) Inodes() int { return ns.inodes.Len() }

// Sessions is the number of sessions that have not ended.
func (ns *Namespace) Sessions() int { return ns.sessions.Len() - ns.endedSessions.Len() }

// SessionLive tells whether there is such a session that has not ended.
func (ns *Namespace) SessionLive(id uint64) bool {
	s, found := ns.sessions.Get(id)
	return found && s.endedIndex == 0
}

// applyOp does the operation of a command. undo is how a Cancel takes it back, for what created a name exclusively.
func (ns *Namespace) applyOp(cmd *storepb.Command) (result *storepb.Result, undo *storepb.Undo) {
	if len(cmd.GetCaller().GetHost()) > MaxName {
		return fail(storepb.Code_INVALID), nil
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_Create:
		return ns.create(cmd.GetCaller(), op.Create)
	case *storepb.Op_Link:
		return ns.link(cmd.GetCaller(), op.Link)
	case *storepb.Op_Rename:
		return ns.rename(cmd, op.Rename)
	case *storepb.Op_Unlink:
		return ns.unlink(cmd, op.Unlink), nil
	case *storepb.Op_SetAttr:
		return ns.setAttr(op.SetAttr), nil
	case *storepb.Op_SetContent:
		return ns.setContent(cmd, op.SetContent), nil
	case *storepb.Op_SetXattr:
		return ns.setXattr(cmd.GetCaller(), op.SetXattr), nil
	case *storepb.Op_RemoveXattr:
		return ns.removeXattr(op.RemoveXattr), nil
	case *storepb.Op_Pin:
		return ns.setPinned(cmd.GetSession(), op.Pin.GetIno(), true), nil
	case *storepb.Op_Unpin:
		return ns.setPinned(cmd.GetSession(), op.Unpin.GetIno(), false), nil
	case *storepb.Op_EndSession:
		return ns.endSession(op.EndSession), nil
	case *storepb.Op_SetMember:
		return ns.setMember(op.SetMember.GetMember()), nil
	case *storepb.Op_RemoveMember:
		ns.members.Delete(op.RemoveMember.GetId())
		return ok(), nil
	case *storepb.Op_SetLimits:
		return ns.setLimits(op.SetLimits), nil
	case *storepb.Op_ProcessGone:
		return ns.processGone(cmd.GetSession(), op.ProcessGone), nil
	case *storepb.Op_SetRule:
		return ns.setRule(op.SetRule.GetRule()), nil
	case *storepb.Op_DeleteRule:
		return ns.deleteRule(op.DeleteRule.GetPattern()), nil
	case *storepb.Op_ForgetHost:
		return ns.forgetHost(cmd.GetCaller(), op.ForgetHost.GetName()), nil
	case *storepb.Op_TakeLock:
		return ns.takeLock(cmd, op.TakeLock), nil
	case *storepb.Op_DropLocks:
		return ns.dropLocks(cmd.GetSession(), op.DropLocks), nil
	case *storepb.Op_InterruptLock:
		return fail(ns.locks.Interrupt(ids.Session(cmd.GetSession()), op.InterruptLock)), nil
	case *storepb.Op_Tick:
		return ns.tick(), nil
	default:
		return fail(storepb.Code_UNKNOWN_COMMAND), nil
	}
}

func ok() *storepb.Result { return &storepb.Result{} }

func fail(code storepb.Code) *storepb.Result { return &storepb.Result{Code: code} }

func (ns *Namespace) putInode(in *inode) {
	old, _ := ns.inodes.Set(in.ino, in)
	if old != nil {
		ns.forgetInode(old)
		ns.recountInode(old, in)
	} else {
		ns.countInode(in, +1)
	}
	if h, ok := in.heldBy(); ok {
		ns.byProcess.Set(h)
	}
}

func (ns *Namespace) forgetInode(in *inode) {
	if h, ok := in.heldBy(); ok {
		ns.byProcess.Delete(h)
	}
}

func (ns *Namespace) deleteInode(ino uint64) {
	if old, found := ns.inodes.Delete(ino); found {
		ns.forgetInode(old)
		ns.countInode(old, -1)
	}
}

func (ns *Namespace) putEntry(e *entry) {
	if old, replaced := ns.byName.Set(e); replaced {
		ns.forgetEntry(old)
	}
	ns.byCookie.Set(e)
	ns.byIno.Set(e)
	if e.due != 0 {
		ns.byDue.Set(e)
	}
	if e.pending != nil {
		ns.byPending.Set(e)
	}
	e.maker.each(func(p *process) { ns.byMaker.Set(e.madeBy(p)) })
	ns.countLockFile(e, +1)
	ns.countName(e, +1)
}

func (ns *Namespace) deleteEntry(e *entry) {
	if old, found := ns.byName.Delete(e); found {
		ns.forgetEntry(old)
	}
}

func (ns *Namespace) forgetEntry(e *entry) {
	ns.byCookie.Delete(e)
	ns.byIno.Delete(e)
	ns.byDue.Delete(e)
	if e.pending != nil {
		ns.byPending.Delete(e)
	}
	e.maker.each(func(p *process) { ns.byMaker.Delete(e.madeBy(p)) })
	ns.countLockFile(e, -1)
	ns.countName(e, -1)
}

func (ns *Namespace) entry(parent uint64, name []byte) (*entry, bool) {
	return ns.byName.Get(&entry{parent: parent, name: string(name)})
}

func (ns *Namespace) newCookie() uint64 {
	cookie := ns.nextCookie
	ns.nextCookie++
	return cookie
}

func (ns *Namespace) hasEntries(dir uint64) bool {
	found := false
	ns.byName.Ascend(&entry{parent: dir}, func(e *entry) bool {
		found = e.parent == dir
		return false
	})
	return found
}

// isFull tells of a directory that has entries.
func (ns *Namespace) isFull(in *inode) bool { return in.isDir() && ns.hasEntries(in.ino) }

// directory answers a directory that is still in the tree.
func (ns *Namespace) directory(ino uint64) (*inode, storepb.Code) {
	dir, found := ns.inodes.Get(ino)
	switch {
	case !found:
		return nil, storepb.Code_NOT_FOUND
	case !dir.isDir():
		return nil, storepb.Code_NOT_DIRECTORY
	case dir.nlink == 0:
		return nil, storepb.Code_NOT_FOUND
	}
	return dir, storepb.Code_OK
}

// touchDir records that a directory's entries changed; subdirs is the change in their number.
func (ns *Namespace) touchDir(ino uint64, subdirs int) {
	dir, found := ns.inodes.Get(ino)
	if !found {
		return
	}
	changed := *dir
	changed.mtime, changed.ctime, changed.changed = ns.time, ns.time, ns.index
	changed.nlink = uint32(int(changed.nlink) + subdirs)
	ns.putInode(&changed)
	if ns.rules.Len() == 0 {
		return // a directory's time is of no account
	}
	if e := ns.nameOf(ino); e != nil && (e.due != 0 || e.stale != nil || dir.mtime == 0) {
		ns.judgeAgain(e)
	}
}

// depth is the number of directories above dir; the root's is 0.
func (ns *Namespace) depth(dir uint64) int {
	depth := 0
	for dir != RootIno {
		in, found := ns.inodes.Get(dir)
		if !found {
			break
		}
		dir = in.parent
		depth++
	}
	return depth
}

func (in *inode) isDir() bool  { return in.mode&syscall.S_IFMT == syscall.S_IFDIR }
func (in *inode) isFile() bool { return in.mode&syscall.S_IFMT == syscall.S_IFREG }

// dirSize is what a directory's st_size says, whatever it holds.
const dirSize = 4096

func (in *inode) attr() *storepb.Attr {
	size := uint64(len(in.content))
	if in.isDir() {
		size = dirSize
	}
	return &storepb.Attr{
		Ino: in.ino, Mode: in.mode, Nlink: in.nlink, Uid: in.uid, Gid: in.gid, Size: size,
		Atime: in.atime, Mtime: in.mtime, Ctime: in.ctime, Btime: in.btime, Version: in.version,
	}
}

func checkName(name []byte) storepb.Code {
	if len(name) > MaxName {
		return storepb.Code_NAME_TOO_LONG
	}
	if len(name) == 0 || string(name) == "." || string(name) == ".." {
		return storepb.Code_INVALID
	}
	for _, c := range name {
		if c == 0 || c == '/' {
			return storepb.Code_INVALID
		}
	}
	return storepb.Code_OK
}
