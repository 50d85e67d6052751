package consensus

import "github.com/hashicorp/raft"

// maxBatch is how many bytes of entries a leader sends at a time, unless one alone has more. Raft counts entries only, of which 64
// may be 16 MiB: too much for the time that a slow line has, and for the memory of both sides.
const maxBatch = 2 << 20

// limitBatch leaves out of a request what is too much for one. Raft goes on behind the last entry that the request has.
func limitBatch(req *raft.AppendEntriesRequest) {
	bytes := uint64(0)
	for i, entry := range req.Entries {
		if bytes += entrySize(entry); bytes > maxBatch && i > 0 {
			req.Entries = req.Entries[:i:i]
			return
		}
	}
}
