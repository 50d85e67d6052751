package page

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// LockDetail has all known facts of a lock, and is the answer of /v1/locks/PATH. Without a token there is no
// such lock any more, or it is hidden from the viewer. The history may still have previous locks.
type LockDetail struct {
	Lock
	Lives    string              `json:"lives,omitempty"`   // end of the lock, as text
	Remover  string              `json:"remover,omitempty"` // users who may remove the lock now, permissions apart
	Rule     string              `json:"rule,omitempty"`    // pattern of the applicable rule
	Guard    string              `json:"guard,omitempty"`
	OnStale  string              `json:"on_stale,omitempty"`
	Tag      string              `json:"tag,omitempty"`
	Since    moment              `json:"since,omitzero"`   // time of becoming stale or unreachable
	Issued   moment              `json:"issued,omitzero"`  // the format's own time of acquisition or last heartbeat
	Renewed  moment              `json:"renewed,omitzero"` // time of the last write
	Inode    uint64              `json:"inode,omitempty"`
	Mode     string              `json:"mode,omitempty"` // octal
	UID      uint32              `json:"uid"`
	GID      uint32              `json:"gid"`
	Size     uint64              `json:"size"`
	Queue    []lockjson.Advisory `json:"queue"`    // flock and fcntl locks on it, then the waiters in order
	History  []lockjson.Event    `json:"history"`  // the last events, oldest first
	Commands []Command           `json:"commands"` // useful here
	Gone     bool                `json:"gone"`     // no lock of this name exists now
}

// Command is a command line with its purpose.
type Command struct {
	Line string `json:"command"`
	For  string `json:"for"`
}

const historyKept = 200

// lock returns a lock by its path. It returns fs.ErrNotExist if there is neither a lock nor an event with
// this path.
func (s *Server) lock(ctx context.Context, path string) (*LockDetail, error) {
	now := s.overview.now()
	all, err := s.listings.get(ctx, now)
	if err != nil {
		return nil, err
	}
	d := &LockDetail{Queue: []lockjson.Advisory{}, History: []lockjson.Event{}}
	if d.History, err = s.history(ctx, path); err != nil {
		return nil, err
	}
	found, here := all.full[path]
	if !here {
		if len(d.History) == 0 {
			return nil, fs.ErrNotExist
		}
		d.Path, d.Gone = path, true
		d.Commands = commandsFor(d, s.cfg.Mount)
		return d, nil
	}
	d.Lock = describe(found)
	if d.State != stateHidden {
		f, attr := found.GetFacts(), found.GetAttr()
		// Round the times in these texts to ten seconds: otherwise each update would change the page.
		d.Lives, d.Remover = lockjson.Lives(found, int64(now)/roundTo*roundTo), lockjson.Remover(found)
		d.Rule, d.Guard, d.OnStale = found.GetRule(), lockfact.Guard(f.GetGuard()).String(), lockfact.OnStale(f.GetOnStale()).String()
		d.Since, d.Tag, d.Issued, d.Renewed = moment(found.GetSince()), f.GetTag(), moment(f.GetIssuedAt()), moment(attr.GetMtime())
		d.Inode, d.UID, d.GID, d.Size = attr.GetIno(), attr.GetUid(), attr.GetGid(), attr.GetSize()
		d.Mode = fmt.Sprintf("%04o", attr.GetMode()&0o7777)
		for _, a := range found.GetAdvisoryLocks() {
			d.Queue = append(d.Queue, lockjson.DescribeAdvisory(a, int64(now)))
		}
	}
	d.Commands = commandsFor(d, s.cfg.Mount)
	return d, nil
}

const roundTo = 10e9

// history returns the last events of a path visible to the caller.
func (s *Server) history(ctx context.Context, path string) ([]lockjson.Event, error) {
	events := []lockjson.Event{}
	for after := uint64(0); ; {
		result, err := s.listings.ask.query(ctx, &storepb.Query{Query: &storepb.Query_ListEvents{
			ListEvents: &storepb.ListEvents{After: after, Path: []byte(path), Limit: eventPage, Viewer: viewer(ctx)},
		}})
		if err != nil {
			return nil, err
		}
		for _, e := range result.GetEvents() {
			events = append(events, lockjson.DescribeEvent(e))
			after = e.GetNumber()
		}
		if len(result.GetEvents()) < eventPage {
			return events[max(0, len(events)-historyKept):], nil
		}
	}
}

// absences returns the absences in the last events, in order. One without an end ends in the far future.
func (s *Server) absences(ctx context.Context) ([]absence, error) {
	result, err := s.events(ctx, &storepb.ListEvents{
		Before: math.MaxUint64, Kinds: []string{"host_unreachable", "host_back"}, Limit: eventPage,
	})
	if err != nil {
		return nil, err
	}
	return absencesIn(result.GetEvents()), nil
}

func commandsFor(d *LockDetail, mount string) []Command {
	path, onMount := word(d.Path), word(mount+"/"+d.Path)
	commands := []Command{{"lockfs why " + path, "print the same in a terminal"}}
	switch {
	case d.Gone:
		return []Command{{"lockfs events --follow", "follow new events"}}
	case d.State == stateData, d.State == stateHidden:
		return commands
	case d.State == string(lockfact.Unreachable):
		commands = append(commands, Command{"lockfs host forget " + word(d.Host), "if that host is gone for good; its locks become stale"})
	case d.State == string(lockfact.Stale):
		commands = append(commands, Command{"lockfs rm " + onMount, "remove it: its holder is gone"})
	}
	if d.Waiters > 0 {
		commands = append(commands, Command{"lockfs locks " + path, "list the waiters in order"})
	}
	if d.State != string(lockfact.Stale) {
		commands = append(commands, Command{"lockfs rm --force " + onMount, "remove it by force; a live holder keeps running and still acts as the holder"})
	}
	return commands
}

func word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@,%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	if strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) >= 0 {
		return "$" + "'" + strings.ReplaceAll(strings.Trim(strconv.QuoteToASCII(s), `"`), "'", `\'`) + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
