package rpc

import (
	"context"
	"fmt"
	"net/netip"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/hostinfo"
)

// Role is the kind of a caller.
type Role byte

// The roles.
const (
	RoleLocal    Role = iota // in this process
	RoleInsecure             // at a port without TLS; its claims are unverified
	RoleJoiner               // at the join server, unknown
	RoleUser                 // on a unix socket of its host
	RoleClient               // with the certificate of a mount host
	RoleServer               // with the certificate of a server
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

// Caller is the caller of a request, as proven by its connection. UID, GID and Groups are those of the
// process at the time it connected to a unix socket. A caller with only Host counts as root there.
type Caller struct {
	Role    Role
	Host    string     // of the certificate; empty: none
	Key     [32]byte   // hash of the certificate's key
	Address netip.Addr // of the caller; zero: on this host
	// Forwarder is the server which forwarded the call, by name or address; empty: a direct call. The other
	// fields come from this server.
	Forwarder string
	UID       uint32 // of RoleUser, like the next two
	GID       uint32
	Groups    []uint32 // supplementary; nil: none or unknown
	// Administrator means: the process on the unix socket could administer this host
	// (hostinfo.IsAdministrator).
	Administrator bool
}

// User returns the user for budgets: the host of a certificate, or else the address.
func (c Caller) User() budget.User {
	switch {
	case c.Host != "":
		return budget.User{Host: c.Host}
	case c.Address.IsValid():
		return budget.User{Host: c.Address.String()}
	}
	return budget.User{UID: hostinfo.BudgetUID(c.UID)}
}

// Standing returns the caller's standing for the budgets of this process.
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

// WithCaller sets the caller of a context's calls.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a context; the default is this process.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
