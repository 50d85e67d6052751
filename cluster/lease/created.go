package lease

import "lockfs/raftstore/storepb"

// MaxWithCommand is how many questions go with a command at most, and how many inodes that it changes.
const MaxWithCommand = 8

// ForCreated is a question that goes with a command, once that has a result: about inode 0 it means the one of the result, and of a content by
// the name that the command used, as whoever opens it by that name asks. Any other question is the same.
func ForCreated(question *storepb.Query, result *storepb.Result) *storepb.Query {
	ino := result.GetAttr().GetIno()
	switch q := question.GetQuery().(type) {
	case *storepb.Query_GetAttr:
		if q.GetAttr.GetIno() == 0 {
			return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}
		}
	case *storepb.Query_Read:
		if q.Read.GetIno() == 0 {
			read := &storepb.Read{Ino: ino}
			if seen := result.GetObservations(); len(seen) > 0 {
				read.Name = seen[0]
			}
			return &storepb.Query{Query: &storepb.Query_Read{Read: read}}
		}
	}
	return question
}
