// Package wal keeps raft's log in a directory with hashicorp/raft-wal, and opens it only once it is proved that
// nothing of it is missing.
//
// raft-wal appends batches of entries to segment files, each with one write and one fsync; a checksum ends each batch. It
// is made to survive a power cut, after which the last batch may be there in part: when it opens a log, whatever it
// cannot read is such a batch to it, and is forgotten, with all that comes after. An entry that was acknowledged must not go
// that way because a disk has lost a bit. So every batch is checked here before, and what cannot be read is either
//
//   - torn: it is the last batch, and what is there of it are whole sectors, the others having never been written. That
//     write was under way when the machine stopped, so nobody was told that the entries are safe. Where the batch ends is
//     what its frames declare; behind that, or behind the sector that has none of the next frame, may be no other batch.
//   - damaged: anything else. Then [Open] fails with a [Damage].
//
// Where the log ends is also noted when it is closed. So a log that was closed and has lost its end is always found out.
// After a crash, a last batch that was damaged can be taken for torn if the damage, or the entries, are sectors of zeros, or
// if an entry ends in zeros from the damage on.
package wal
