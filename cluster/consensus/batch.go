package consensus

import "github.com/hashicorp/raft"

// maxBatch is how many bytes of entries a leader sends at once, unless a single entry has more. Raft limits only their number to 64, which
// may be 16 MiB: too much for a slow link, and for the memory of both sides.
const maxBatch = 2 << 20

// limitBatch removes excess entries from a request. Raft continues after its last entry.
func limitBatch(req *raft.AppendEntriesRequest) {
	bytes := uint64(0)
	for i, entry := range req.Entries {
		if bytes += entrySize(entry); bytes > maxBatch && i > 0 {
			req.Entries = req.Entries[:i:i]
			return
		}
	}
}
