package control

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Saved is the kernel's knowledge of a control directory, for the mount's next process.
type Saved struct {
	Began      int64
	LastNode   ids.Inode
	LastHandle uint64
	Nodes      []SavedNode
	Handles    []SavedHandle
	Forgotten  bool // see Forgotten
}

// SavedNode is a node known to the kernel.
type SavedNode struct {
	Number  ids.Inode
	Lookups uint64
	Kind    string
	View    string
	Parent  ids.Inode
	Ino     ids.Inode
	Name    []byte
}

// SavedHandle is an open file.
type SavedHandle struct {
	Number    uint64
	BudgetUID uint32 // the charged user
	Kind      string
	View      string
	Data      []byte // produced and unread
	Parent    ids.Inode
	Name      []byte
	Viewer    []byte // a storepb.Viewer
	Waits     bool
	Ends      bool
	Last      uint64
	Seen      uint64
}

// Kinds of saved nodes and handles.
const (
	kindRoot     = "root"
	kindFree     = "free"
	kindStatus   = "status"
	kindLocks    = "locks"
	kindEvents   = "events"
	kindChanges  = "changes"
	kindMirror   = "mirror"
	kindFile     = "file"
	kindWait     = "wait"
	kindForce    = "force"
	kindSnapshot = "snapshot"
)

func saveNode(of node) SavedNode {
	switch n := of.(type) {
	case root:
		return SavedNode{Kind: kindRoot}
	case freeFile:
		return SavedNode{Kind: kindFree}
	case statusFile:
		return SavedNode{Kind: kindStatus}
	case locksFile:
		return SavedNode{Kind: kindLocks, View: string(n)}
	case eventsFile:
		return SavedNode{Kind: kindEvents, View: string(n)}
	case changesFile:
		return SavedNode{Kind: kindChanges}
	case mirrorDir:
		return SavedNode{Kind: kindMirror, View: string(n.view), Ino: n.ino}
	case mirrorFile:
		return SavedNode{Kind: kindFile, View: string(n.view), Parent: n.parent, Name: []byte(n.name), Ino: n.ino}
	case waitFile:
		return SavedNode{Kind: kindWait, Parent: n.parent, Name: []byte(n.name)}
	case forceNode:
		return SavedNode{Kind: kindForce, Ino: n.ino}
	}
	panic(fmt.Sprintf("no kind of node: %T", of))
}

func (s *SavedNode) node() (node, error) {
	switch s.Kind {
	case kindRoot:
		return root{}, nil
	case kindFree:
		return freeFile{}, nil
	case kindStatus:
		return statusFile{}, nil
	case kindLocks:
		return locksFile(s.View), nil
	case kindEvents:
		return eventsFile(s.View), nil
	case kindChanges:
		return changesFile{}, nil
	case kindMirror:
		return mirrorDir{view(s.View), s.Ino}, nil
	case kindFile:
		return mirrorFile{view(s.View), s.Parent, string(s.Name), s.Ino}, nil
	case kindWait:
		return waitFile{s.Parent, string(s.Name)}, nil
	case kindForce:
		return forceNode{s.Ino}, nil
	}
	return nil, fmt.Errorf("the control directory has no %q", s.Kind)
}

func saveHandle(of handle) (SavedHandle, error) {
	switch h := of.(type) {
	case snapshot:
		return SavedHandle{Kind: kindSnapshot, Data: h}, nil
	case *lockList:
		viewer, err := proto.Marshal(h.viewer)
		return SavedHandle{
			Kind: kindLocks, View: string(h.file), Data: h.at.rest, Parent: ids.Inode(h.at.parent), Name: h.at.name, Viewer: viewer,
			Ends: h.at.ended, Last: uint64(h.now), Seen: h.at.offset,
		}, err
	case *eventStream:
		viewer, err := proto.Marshal(h.viewer)
		return SavedHandle{Kind: kindEvents, Data: h.ahead, Viewer: viewer, Waits: h.waits, Ends: h.ends, Last: h.last, Seen: h.seen}, err
	case *changeStream:
		return SavedHandle{Kind: kindChanges, Data: h.ahead, Seen: uint64(h.seen)}, nil
	case *waiting:
		return SavedHandle{Kind: kindWait, Data: h.found, Parent: h.parent, Name: []byte(h.name)}, nil
	}
	return SavedHandle{}, fmt.Errorf("the control directory has no handle %T", of)
}

func (s *SavedHandle) handle(of *source) (handle, error) {
	switch s.Kind {
	case kindSnapshot:
		return snapshot(s.Data), nil
	case kindLocks:
		viewer := new(storepb.Viewer)
		err := proto.Unmarshal(s.Viewer, viewer)
		at := listPosition{offset: s.Seen, rest: s.Data, parent: uint64(s.Parent), name: s.Name, ended: s.Ends}
		return &lockList{
			source: of, file: locksFile(s.View), viewer: viewer, turn: make(chan struct{}, 1), now: int64(s.Last), at: at, before: at,
		}, err
	case kindEvents:
		viewer := new(storepb.Viewer)
		err := proto.Unmarshal(s.Viewer, viewer)
		return &eventStream{
			source: of, viewer: viewer, waits: s.Waits, ends: s.Ends, last: s.Last, turn: make(chan struct{}, 1), seen: s.Seen, ahead: s.Data,
		}, err
	case kindChanges:
		return &changeStream{source: of, turn: make(chan struct{}, 1), seen: ids.Index(s.Seen), ahead: s.Data}, nil
	case kindWait:
		w := &waiting{waitFile: waitFile{s.Parent, string(s.Name)}, source: of, turn: make(chan struct{}, 1), isWaited: true}
		if len(s.Data) > 0 {
			w.found = s.Data
		}
		return w, nil
	}
	return nil, fmt.Errorf("the control directory has no handle %q", s.Kind)
}
