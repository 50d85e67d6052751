package sim

import (
	"context"
	"fmt"

	"lockfs/raftstore/storepb"
)

// token is the fencing token that somebody saw of a name.
type token struct {
	name       string
	number     uint64
	start, end int64
	by         string
}

// seeToken asks for that of a name. It is no call of the history.
func (p *player) seeToken() {
	client, gen := p.mount.await()
	seen := token{name: p.shared(), start: p.w.now(), by: p.mount.name}
	d := doing{ctx: context.Background(), client: client}
	result, errno := d.query(&storepb.Query{Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Parent: p.dir.ino, Name: []byte(seen.name)}}})
	if thaw := p.mount.h.thawed(); thaw != nil {
		<-thaw
	}
	if errno != 0 || p.mount.generation() != gen || len(result.GetLocks()) != 1 {
		return
	}
	seen.number, seen.end = result.GetLocks()[0].GetToken(), p.w.now()
	p.dir.mu.Lock()
	defer p.dir.mu.Unlock()
	p.dir.tokens = append(p.dir.tokens, seen)
}

// checkTokens requires that nobody sees a smaller token than somebody who was done before.
func checkTokens(seen []token) error {
	for _, later := range seen {
		for _, earlier := range seen {
			if earlier.name == later.name && earlier.end < later.start && earlier.number > later.number {
				return fmt.Errorf("the token of %s fell: %+v, then %+v", later.name, earlier, later)
			}
		}
	}
	return nil
}
