package namespace

import (
	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
)

// tree holds the inodes and their names, with indexes and counts.
type tree struct {
	nextIno    ids.Inode
	nextCookie uint64

	inodes     *digest.Map[ids.Inode, *inode]
	byName     *digest.Tree[*entry]  // by parent, name
	byCookie   *btree.BTreeG[*entry] // by parent, cookie
	byIno      *btree.BTreeG[*entry] // by inode, parent, name
	byDue      *btree.BTreeG[*entry] // those with a due time, by that
	byPending  *btree.BTreeG[*entry] // those with a pending event, by its time
	lockFiles  map[ids.Inode]int     // how many files of a directory are locks
	lockCounts lockCounts
	orphans    orphans
	byProcess  processIndex
	usage      usageTable
	quotas     quotas
	below      map[ids.Inode]*subtree // of each directory; nil while a state is restored; never ranged over
	guarded    *btree.BTreeG[*entry]  // by parent and name, see entry.isGuarded
	listed     *btree.BTreeG[*entry]  // by parent and name, see mayBeListed
	locked     map[ids.Inode]bool     // files with kernel locks or requests for them; never ranged over
	timeouts   *btree.BTreeG[*entry]  // names with a host timeout

	touched      []ids.Inode // by the last command; not part of the state
	changedNames []NameKey   // likewise
}

func newTree(d *digest.Digest) tree {
	options := btree.Options{NoLocks: true}
	return tree{
		nextIno:    RootIno + 1,
		nextCookie: cookieParent + 1,
		inodes:     digest.NewMap(d, digest.Itself[ids.Inode, *inode]),
		byName:     digest.NewTree(d, lessByName, sameRecord),
		byCookie:   btree.NewBTreeGOptions(lessByCookie, options),
		byIno:      btree.NewBTreeGOptions(lessByIno, options),
		byDue:      btree.NewBTreeGOptions(lessByDue, options),
		byPending:  btree.NewBTreeGOptions(lessByPending, options),
		lockFiles:  make(map[ids.Inode]int),
		lockCounts: lockCounts{files: make(map[lockKind]int)},
		orphans:    newOrphans(d),
		byProcess:  newProcessIndex(),
		usage:      usageTable{usedBy: make(map[uint32]*usage), quotas: newUserQuotas(d)},
		quotas:     newQuotas(d),
		guarded:    btree.NewBTreeGOptions(lessByName, options),
		listed:     btree.NewBTreeGOptions(lessByName, options),
		locked:     make(map[ids.Inode]bool),
		timeouts:   btree.NewBTreeGOptions(lessByTimeout, options),
	}
}

// frozen leaves out derived fields.
func (t *tree) frozen() tree {
	return tree{
		nextIno: t.nextIno, nextCookie: t.nextCookie, inodes: t.inodes.Copy(), byName: t.byName.Copy(),
		orphans: orphans{byIno: t.orphans.byIno.Copy(), pins: t.orphans.pins.Copy()}, usage: usageTable{limits: t.usage.limits, quotas: t.usage.quotas.Copy()},
		quotas: quotas{byDir: t.quotas.byDir.Copy()},
	}
}

func (t *tree) inode(ino ids.Inode) (*inode, bool) { return t.inodes.Get(ino) }
