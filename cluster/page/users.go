package page

import (
	"fmt"
	"os/user"
	"sync"
	"time"
)

// users caches the names of users of this host.
type users struct {
	mu    sync.Mutex
	names map[uint32]string
	since time.Time
}

// userTime is how long names are cached.
const userTime = time.Minute

// name returns the name of a user with the uid, or only the uid.
func (u *users) name(uid uint32) string {
	u.mu.Lock()
	if time.Since(u.since) >= userTime {
		u.names, u.since = make(map[uint32]string), time.Now()
	}
	name, known := u.names[uid]
	u.mu.Unlock()
	if known {
		return name
	}
	name = fmt.Sprintf("uid %d", uid)
	if found, err := user.LookupId(fmt.Sprint(uid)); err == nil { // it may take long: without the mutex
		name = fmt.Sprintf("%s (%d)", found.Username, uid)
	}
	u.mu.Lock()
	u.names[uid] = name
	u.mu.Unlock()
	return name
}
