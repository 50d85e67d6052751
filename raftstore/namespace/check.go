package namespace

import (
	"errors"
	"fmt"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// check refuses a restored state with contradictions on which Apply and Query would fail. Every name is in a
// directory and has an inode. Directories are a tree below the root. The next numbers are free, and no record
// is duplicate. It does not count links.
func (ts *state) check(records uint64) error {
	root, found := ts.tree.inode(RootIno)
	if !found || !root.isDir() {
		return errors.New("no root directory")
	}
	if ts.records() != records || ts.tree.byName.Len() != ts.tree.byCookie.Len() {
		return errors.New("a record came twice, or a reply without its session")
	}
	var err error
	ts.tree.inodes.Scan(func(_ ids.Inode, in *inode) bool {
		err = ts.checkInode(in)
		return err == nil
	})
	if err != nil {
		return err
	}
	ts.tree.byName.Scan(func(e *entry) bool {
		err = ts.checkEntry(e)
		return err == nil
	})
	if err != nil {
		return err
	}
	ts.tree.quotas.byDir.Scan(func(dir ids.Inode, _ *storepb.Quota) bool {
		if in, found := ts.tree.inode(dir); !found || !in.isDir() || in.nlink == 0 {
			err = fmt.Errorf("a quota of inode %d, which is no directory", dir)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if err := ts.checkOrphans(); err != nil {
		return err
	}
	if err := ts.checkSessions(); err != nil {
		return err
	}
	if err := ts.checkLocks(); err != nil {
		return err
	}
	if err := ts.trust.Check(); err != nil {
		return err
	}
	ts.sessions.replies.Scan(func(r *reply) bool {
		if r.result == nil {
			err = fmt.Errorf("reply %d of session %d says nothing", r.seq, r.session)
		}
		return err == nil
	})
	return err
}

func (ts *state) checkInode(in *inode) error {
	if in.ino == 0 || in.ino >= ts.tree.nextIno {
		return fmt.Errorf("inode %d, the next is %d", in.ino, ts.tree.nextIno)
	}
	if in.isDir() && in.nlink > 0 && !ts.tree.belowRoot(in) {
		return fmt.Errorf("directory %d is not below the root", in.ino)
	}
	return nil
}

func (ts *state) checkEntry(e *entry) error {
	if code := checkName([]byte(e.name)); code != storepb.Code_OK {
		return fmt.Errorf("name %q: %v", e.name, code)
	}
	if e.cookie <= cookieParent || e.cookie >= ts.tree.nextCookie {
		return fmt.Errorf("name %q has cookie %d, the next is %d", e.name, e.cookie, ts.tree.nextCookie)
	}
	if _, code := ts.tree.directory(e.parent); code != storepb.Code_OK {
		return fmt.Errorf("name %q in inode %d: %v", e.name, e.parent, code)
	}
	in, found := ts.tree.inode(e.ino)
	if !found || in.nlink == 0 || in.ino == RootIno || in.isDir() && in.parent != e.parent {
		return fmt.Errorf("name %q cannot be of inode %d", e.name, e.ino)
	}
	if in.facts != nil && in.facts != e.known {
		return fmt.Errorf("name %q comes before inode %d", e.name, e.ino)
	}
	return nil
}

func (ts *state) checkOrphans() error {
	var err error
	pinned := 0
	ts.tree.orphans.byIno.Scan(func(ino ids.Inode, _ *orphan) bool {
		if in, found := ts.tree.inode(ino); !found || in.nlink > 0 {
			err = fmt.Errorf("orphan %d", ino)
		}
		if ts.tree.orphans.isPinned(ino) {
			pinned++
		}
		return err == nil
	})
	ts.tree.orphans.pins.Scan(func(p pin) bool {
		if _, found := ts.tree.orphans.byIno.Get(p.ino); !found {
			err = fmt.Errorf("session %d keeps inode %d, which is no orphan", p.session, p.ino)
		}
		return err == nil
	})
	if err == nil && ts.tree.orphans.expiring.Len() != ts.tree.orphans.byIno.Len()-pinned {
		err = errors.New("an orphan that was removed twice")
	}
	return err
}

func (ts *state) checkSessions() error {
	ended := 0
	ts.sessions.byID.Scan(func(_ ids.Session, s *session) bool {
		if s.endedIndex != 0 {
			ended++
		}
		return true
	})
	if ts.sessions.ended.Len() != ended {
		return errors.New("two sessions ended by one command")
	}
	return nil
}

// checkLocks checks the session counts of hosts, the rules and the events.
func (ts *state) checkLocks() error {
	live := make(map[string]int)
	ts.sessions.byID.Scan(func(_ ids.Session, s *session) bool {
		if s.endedIndex == 0 {
			live[s.host]++
		}
		return true
	})
	var err error
	ts.hosts.byName.Scan(func(name string, h *host) bool {
		if h.sessions != live[name] {
			err = fmt.Errorf("host %q has %d sessions, not %d", name, live[name], h.sessions)
		}
		delete(live, name)
		return err == nil
	})
	if err == nil && len(live) > 0 {
		err = errors.New("a session of an unknown host")
	}
	ts.rules.byPattern.Scan(func(pattern string, rule *storepb.Rule) bool {
		if message := CheckRule(rule); message != "" {
			err = fmt.Errorf("rule %q: %s", pattern, message)
		}
		return err == nil
	})
	if number, _, found := ts.events.kept.Max(); found && number > ts.events.last {
		err = fmt.Errorf("event %d, the last is %d", number, ts.events.last)
	}
	for class, of := range ts.events.byClass {
		if of.Len() > keptEvents {
			err = fmt.Errorf("%d events of class %d", of.Len(), class)
		}
	}
	return err
}
