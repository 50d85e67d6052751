package rpc

import (
	"context"
	"fmt"
	"net/netip"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/hostinfo"
)

// Role is what a caller may be.
type Role byte

// The roles there are.
const (
	RoleLocal    Role = iota // it calls in this process
	RoleInsecure             // it has reached a port without TLS, and may say of itself what it likes
	RoleJoiner               // it has reached the join server, and nobody knows who it is
	RoleUser                 // it calls on a unix socket of its host
	RoleClient               // its certificate is that of a mount host
	RoleServer               // its certificate is that of a server
)

func (r Role) String() string {
	switch r {
	case RoleLocal:
		return "local"
	case RoleInsecure:
		return "insecure"
	case RoleJoiner:
		return "joiner"
	case RoleUser:
		return "user"
	case RoleClient:
		return "client"
	case RoleServer:
		return "server"
	}
	return fmt.Sprintf("role %d", byte(r))
}

// Caller is who makes a call, as far as the connection proves it. UID, GID and Groups are those of the process that connected to
// a unix socket, as they were then; who has only Host has root's rights there as far as anybody knows.
type Caller struct {
	Role    Role
	Host    string     // of the certificate; empty: there is none
	Key     [32]byte   // hash of the certificate's key
	Address netip.Addr // from which it calls; zero: it calls on this host
	// Forwarder is the server that forwarded the call, by name or address; empty: the caller itself is connected. The rest is the caller
	// as that server knows it.
	Forwarder string
	UID       uint32 // of RoleUser, as are the others
	GID       uint32
	Groups    []uint32 // supplementary ones; nil: none, or they are not known
	// Administrator says that the process that connected to a unix socket could administer this host (hostinfo.IsAdministrator).
	Administrator bool
}

// User returns the user that the calls count for: of the host of a certificate, or else of the address.
func (c Caller) User() budget.User {
	switch {
	case c.Host != "":
		return budget.User{Host: c.Host}
	case c.Address.IsValid():
		return budget.User{Host: c.Address.String()}
	}
	return budget.User{UID: hostinfo.BudgetUID(c.UID)}
}

// Standing returns how the calls stand to the budgets of this process.
func (c Caller) Standing() budget.Standing {
	if c.Role == RoleUser && c.UID == 0 && c.Administrator {
		return budget.Privileged
	}
	return budget.Ordinary
}

// String is for logs.
func (c Caller) String() string {
	if by := c.Forwarder; by != "" {
		c.Forwarder = ""
		return c.String() + " through " + by
	}
	switch {
	case c.Role == RoleUser:
		return fmt.Sprintf("uid %d", c.UID)
	case c.Host != "":
		return fmt.Sprintf("%s %s at %s", c.Role, c.Host, c.Address)
	case c.Address.IsValid():
		return fmt.Sprintf("%s at %s", c.Role, c.Address)
	}
	return c.Role.String()
}

type callerKey struct{}

// WithCaller says who makes the calls of a context.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf answers who makes a call: somebody in this process unless its context says otherwise.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
