// Package wal stores raft's log in a directory with hashicorp/raft-wal. It opens a log only after a check for
// missing entries.
//
// raft-wal appends batches of entries to segment files, each with one write and one fsync. A checksum ends
// each batch. After a power cut the last batch may be incomplete. raft-wal takes any unreadable batch for an
// incomplete one, and drops it with everything after it. A single damaged bit on a disk must not delete
// acknowledged entries this way. So this package checks every batch before. An unreadable batch is one of the
// following:
//
//   - torn: it is the last batch, and consists of whole sectors, some of them unwritten. The machine stopped
//     during the write, so the entries were not acknowledged. The frames of the batch declare its end. No
//     other batch may follow this end, or follow the missing sector with the header of the next frame.
//   - damaged: anything else. Then [Open] returns a [Damage].
//
// Close records the end of the log, so the next Open always detects a lost end. After a crash, a damaged last
// batch can look torn if the damage, or the entries, are sectors of zeros. The same applies to an entry with
// only zeros from the damage on.
package wal
