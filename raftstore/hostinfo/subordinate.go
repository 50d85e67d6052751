package hostinfo

import (
	"bufio"
	"cmp"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// subordinateFile has the uids users may use in user namespaces (subuid(5)).
const subordinateFile = "/etc/subuid"

// subordinateTime is how long the content of the file is cached.
const subordinateTime = 10 * time.Second

// subordinates are the ranges in the file.
var subordinates = subordinateUIDs{path: subordinateFile}

type subordinateUIDs struct {
	path string

	mu     sync.Mutex
	until  time.Time
	read   time.Time // modification time of the file at the last reading
	ranges []subordinateRange
}

// subordinateRange is a range of uids of a user.
type subordinateRange struct{ start, end, owner uint32 }

// BudgetUID returns the user that pays for a uid: the owner of a subordinate uid, or the uid itself. Each uid
// of root's own ranges pays for itself, since budgets do not bind root.
func BudgetUID(uid uint32) uint32 { return subordinates.ownerOf(uid) }

func (s *subordinateUIDs) ownerOf(uid uint32) uint32 {
	if uid == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.After(s.until) {
		s.until = now.Add(subordinateTime)
		s.refresh()
	}
	at, found := slices.BinarySearchFunc(s.ranges, uid, func(r subordinateRange, uid uint32) int { return cmp.Compare(r.end, uid) })
	if !found && at == len(s.ranges) || s.ranges[at].start > uid {
		return uid
	}
	return s.ranges[at].owner
}

// refresh reads the file again if it has changed. An unreadable file counts as empty.
func (s *subordinateUIDs) refresh() {
	info, err := os.Stat(s.path)
	if err != nil {
		s.ranges, s.read = nil, time.Time{}
		return
	}
	if info.ModTime().Equal(s.read) {
		return
	}
	file, err := os.Open(s.path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	s.ranges, s.read = nil, info.ModTime()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if r, ok := parseSubordinate(lines.Text()); ok {
			s.ranges = append(s.ranges, r)
		}
	}
	slices.SortFunc(s.ranges, func(a, b subordinateRange) int { return cmp.Compare(a.end, b.end) })
}

// parseSubordinate parses a line: a name or uid, the first uid of the range, and their number.
func parseSubordinate(line string) (r subordinateRange, ok bool) {
	fields := strings.Split(strings.TrimSpace(line), ":")
	if len(fields) != 3 || strings.HasPrefix(fields[0], "#") {
		return r, false
	}
	start, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil {
		return r, false
	}
	count, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil || count == 0 || start == 0 || start+count-1 > 1<<32-1 {
		return r, false
	}
	owner, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		known, err := user.Lookup(fields[0])
		if err != nil {
			return r, false
		}
		owner, _ = strconv.ParseUint(known.Uid, 10, 32)
	}
	return subordinateRange{uint32(start), uint32(start + count - 1), uint32(owner)}, owner != 0
}
