package forrststore

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
)

// The names; forrst.FileName gives none with a dot in front.
const (
	dirName     = ".forrst"
	queueName   = ".queue"
	repliesName = ".replies"
)

// RepliesDir is where the answers to requests are kept, from the root of the namespace.
const RepliesDir = dirName + "/" + repliesName

// place is where things are kept, by inode numbers.
type place struct{ locks, replies, queue uint64 }

// where answers the place, which is made if it is missing. An administrator may have removed it.
func (s *Store) where(ctx context.Context) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place != nil {
		return s.place, nil
	}
	p := new(place)
	for _, part := range []struct {
		name string
		in   uint64
		mode uint32
		ino  *uint64
	}{
		{dirName, raftstore.RootIno, syscall.S_IFDIR | 0o755, &p.locks},
		{repliesName, 0, syscall.S_IFDIR | 0o700, &p.replies},
		{queueName, 0, syscall.S_IFREG | 0o600, &p.queue},
	} {
		if part.in == 0 {
			part.in = p.locks
		}
		var err error
		if *part.ino, err = s.ensure(ctx, part.in, part.name, part.mode); err != nil {
			return nil, err
		}
	}
	s.place = p
	return p, nil
}

// misplaced has the place looked up again, since it is not there any more.
func (s *Store) misplaced(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place == p {
		s.place = nil
	}
}

// ensure answers the inode number of a name that is there or is made. It must not be somebody else's, who
// could take locks away.
func (s *Store) ensure(ctx context.Context, parent uint64, name string, mode uint32) (uint64, error) {
	create := &storepb.Create{Parent: parent, Name: []byte(name), Mode: mode, Exclusive: true, Unlisted: true}
	result, err := s.mutate(ctx, &storepb.Op{Op: &storepb.Op_Create{Create: create}})
	if err == nil && result.GetCode() == storepb.Code_EXISTS {
		lookup := &storepb.Lookup{Parent: parent, Name: []byte(name)}
		result, err = s.client.Query(ctx, &storepb.Query{Query: &storepb.Query_Lookup{Lookup: lookup}})
	}
	if err != nil {
		return 0, err
	}
	attr := result.GetAttr()
	switch {
	case result.GetCode() != storepb.Code_OK:
		return 0, refused(name, result)
	case attr.GetMode()&syscall.S_IFMT != mode&syscall.S_IFMT:
		return 0, fmt.Errorf("%s is there, but of another type; remove it", name)
	case attr.GetUid() != 0 && attr.GetUid() != uint32(os.Getuid()):
		return 0, fmt.Errorf("%s belongs to user %d, and must belong to the one that runs the server or to root", name, attr.GetUid())
	}
	return attr.GetIno(), nil
}
