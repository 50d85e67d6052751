package lease

import "lockfs/raftstore/storepb"

// MaxWithCommand limits the questions and the dropped inodes of a command.
const MaxWithCommand = 8

// ForCreated completes a question that came with a command, by its result: inode 0 stands for the inode of the result, and a read gets the
// name used by the command, as in a later open. Other questions stay as they are.
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
