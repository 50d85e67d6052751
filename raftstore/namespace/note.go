package namespace

import (
	"fmt"

	"lockfs/raftstore/storepb"
)

// maxNote bounds the note, in bytes.
const maxNote = 1 << 10

func (ns *Namespace) setNote(by *storepb.Caller, text string) *storepb.Result {
	if len(text) > maxNote {
		return fail(storepb.Code_INVALID)
	}
	if text != ns.note {
		ns.note = text
		ns.emitDeed(by, eventNoteSet, "", fmt.Sprintf("%q", text))
	}
	return ok()
}
