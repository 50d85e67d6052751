package namespace

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// opOf wraps one operation as the operation of a command.
func opOf(operation proto.Message) *storepb.Op {
	op := new(storepb.Op)
	message := op.ProtoReflect()
	fields := message.Descriptor().Oneofs().Get(0).Fields()
	for i := range fields.Len() {
		if fields.Get(i).Message() == operation.ProtoReflect().Descriptor() {
			message.Set(fields.Get(i), message.NewField(fields.Get(i)))
			proto.Merge(message.Mutable(fields.Get(i)).Message().Interface(), operation)
			return op
		}
	}
	panic(fmt.Sprintf("%T is not an operation", operation))
}

func renameOp(parent uint64, name string, newParent uint64, newName string) *storepb.Op {
	return opOf(&storepb.Rename{
		Parent: parent, Name: []byte(name), NewParent: newParent, NewName: []byte(newName),
	})
}

func getAttr(ino uint64) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}
}

func readOf(ino uint64) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{Ino: ino}}}
}

func readDirOf(ino, after uint64, limit uint32) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_ReadDir{
		ReadDir: &storepb.ReadDir{Ino: ino, After: after, Limit: limit},
	}}
}

func lookupOf(parent uint64, name string) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: parent, Name: []byte(name)},
	}}
}

func xattrsOf(ino uint64) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_GetXattrs{GetXattrs: &storepb.GetXattrs{Ino: ino}}}
}

func getLock(parent uint64, name string) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Parent: parent, Name: []byte(name)}}}
}

// root sees all.
var root = &storepb.Viewer{}

func listLocks(afterParent uint64, afterName string, limit uint32) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_ListLocks{
		ListLocks: &storepb.ListLocks{AfterParent: afterParent, AfterName: []byte(afterName), Limit: limit, Viewer: root},
	}}
}

func listProcesses(host string) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_ListProcesses{ListProcesses: &storepb.ListProcesses{Host: host}}}
}

func listEvents(after uint64, since int64, limit uint32) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_ListEvents{
		ListEvents: &storepb.ListEvents{After: after, Since: since, Limit: limit, Viewer: root},
	}}
}

func statFs(uid uint32) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{Uid: uid}}}
}
