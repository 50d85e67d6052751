package namespace

import (
	"errors"
	"fmt"

	"lockfs/raftstore/storepb"
)

// check refuses a restored state whose records contradict each other where Apply and Query rely on them:
// every name is in a directory and has an inode, directories are a tree below the root, numbers still to
// be given are free, nothing came twice. It does not count links.
func (ns *Namespace) check(records uint64) error {
	root, found := ns.inodes.Get(RootIno)
	if !found || !root.isDir() {
		return errors.New("no root directory")
	}
	if ns.records() != records || ns.byName.Len() != ns.byCookie.Len() {
		return errors.New("a record came twice, or a reply without its session")
	}
	var err error
	ns.inodes.Scan(func(_ uint64, in *inode) bool {
		err = ns.checkInode(in)
		return err == nil
	})
	if err != nil {
		return err
	}
	ns.byName.Scan(func(e *entry) bool {
		err = ns.checkEntry(e)
		return err == nil
	})
	if err != nil {
		return err
	}
	if err := ns.checkOrphans(); err != nil {
		return err
	}
	if err := ns.checkSessions(); err != nil {
		return err
	}
	if err := ns.checkLocks(); err != nil {
		return err
	}
	ns.replies.Scan(func(r *reply) bool {
		if r.result == nil {
			err = fmt.Errorf("reply %d of session %d says nothing", r.seq, r.session)
		}
		return err == nil
	})
	return err
}

func (ns *Namespace) checkInode(in *inode) error {
	if in.ino == 0 || in.ino >= ns.nextIno {
		return fmt.Errorf("inode %d, the next is %d", in.ino, ns.nextIno)
	}
	if in.isDir() && in.nlink > 0 && !ns.belowRoot(in) {
		return fmt.Errorf("directory %d is not below the root", in.ino)
	}
	return nil
}

// belowRoot ends whatever the directories say of their parents.
func (ns *Namespace) belowRoot(dir *inode) bool {
	for range MaxDepth + 1 {
		if dir.ino == RootIno {
			return true
		}
		above, found := ns.inodes.Get(dir.parent)
		if !found {
			return false
		}
		dir = above
	}
	return false
}

func (ns *Namespace) checkEntry(e *entry) error {
	if code := checkName([]byte(e.name)); code != storepb.Code_OK {
		return fmt.Errorf("name %q: %v", e.name, code)
	}
	if e.cookie <= cookieParent || e.cookie >= ns.nextCookie {
		return fmt.Errorf("name %q has cookie %d, the next is %d", e.name, e.cookie, ns.nextCookie)
	}
	if _, code := ns.directory(e.parent); code != storepb.Code_OK {
		return fmt.Errorf("name %q in inode %d: %v", e.name, e.parent, code)
	}
	in, found := ns.inodes.Get(e.ino)
	if !found || in.nlink == 0 || in.ino == RootIno || in.isDir() && in.parent != e.parent {
		return fmt.Errorf("name %q cannot be of inode %d", e.name, e.ino)
	}
	if in.facts != nil && in.facts != e.known {
		return fmt.Errorf("name %q comes before inode %d", e.name, e.ino)
	}
	return nil
}

func (ns *Namespace) checkOrphans() error {
	var err error
	pinned := 0
	ns.orphans.Scan(func(ino uint64, o *orphan) bool {
		if in, found := ns.inodes.Get(ino); !found || in.nlink > 0 {
			err = fmt.Errorf("orphan %d", ino)
		}
		if o.pinned {
			pinned++
		}
		return err == nil
	})
	if err == nil && ns.expiring.Len() != ns.orphans.Len()-pinned {
		err = errors.New("an orphan that was removed twice")
	}
	return err
}

func (ns *Namespace) checkSessions() error {
	ended := 0
	ns.sessions.Scan(func(_ uint64, s *session) bool {
		if s.endedIndex != 0 {
			ended++
		}
		return true
	})
	if ns.endedSessions.Len() != ended {
		return errors.New("two sessions ended by one command")
	}
	return nil
}

// checkLocks compares the counts of hosts with their sessions, and the rules with what a rule may be.
func (ns *Namespace) checkLocks() error {
	live := make(map[string]int)
	ns.sessions.Scan(func(_ uint64, s *session) bool {
		if s.endedIndex == 0 {
			live[s.host]++
		}
		return true
	})
	var err error
	ns.hosts.Scan(func(name string, h *host) bool {
		if h.sessions != live[name] {
			err = fmt.Errorf("host %q has %d sessions, not %d", name, live[name], h.sessions)
		}
		delete(live, name)
		return err == nil
	})
	if err == nil && len(live) > 0 {
		err = errors.New("a session of an unknown host")
	}
	ns.rules.Scan(func(pattern string, rule *storepb.Rule) bool {
		if message := CheckRule(rule); message != "" {
			err = fmt.Errorf("rule %q: %s", pattern, message)
		}
		return err == nil
	})
	if number, _, found := ns.events.Max(); found && number > ns.lastEvent {
		err = fmt.Errorf("event %d, the last is %d", number, ns.lastEvent)
	}
	return err
}
