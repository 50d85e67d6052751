package trust

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Reasons to refuse a host with a valid certificate.
var (
	ErrUnknown   = errors.New("no host of that name has joined")
	ErrRevoked   = errors.New("it was revoked")
	ErrOtherRole = errors.New("the host of that name has another role")
	ErrOtherKey  = errors.New("the host of that name has another key")
)

// Admitted returns nil for an admitted host with this name, role and key; else one of the errors above.
// ErrRevoked is about keys: a revoked host may have been admitted with another key, which an old state does
// not know yet.
func (t *Table) Admitted(name string, role storepb.Role, keyHash []byte) error {
	host, found := t.hosts.Get(name)
	isKnown := found && bytes.Equal(host.GetKeyHash(), keyHash)
	_, revoked := t.revoked.Get(string(keyHash))
	switch {
	case revoked || isKnown && !isLive(host): // a host's revoked key may be forgotten, see MaxRevoked
		return ErrRevoked
	case !found:
		return ErrUnknown
	case !isKnown:
		return ErrOtherKey
	case host.GetRole() != role:
		return ErrOtherRole
	}
	return nil
}

// Host returns the record of a host, also of a revoked one, or nil.
func (t *Table) Host(name string) *storepb.Admission {
	host, _ := t.hosts.Get(name)
	return host
}

// Hosts returns the number of known hosts, revoked ones included.
func (t *Table) Hosts() int { return t.hosts.Len() }

// HostsAfter visits the hosts after a name, in the order of their names, until visit returns false.
func (t *Table) HostsAfter(name string, visit func(*storepb.Admission) bool) {
	t.hosts.Ascend(name, func(at string, host *storepb.Admission) bool { return at == name || visit(host) })
}

// Revoke revokes a host, and every other host with its key. revoked: it was not revoked before.
func (t *Table) Revoke(name string) (result *storepb.Result, revoked bool) {
	host, found := t.hosts.Get(name)
	if !found {
		return refuse(storepb.Code_NOT_FOUND, fmt.Sprintf("no host is named %.300q; see `lockfs host list`", name)), false
	}
	if !isLive(host) {
		return answerHost(host), false
	}
	var same []*storepb.Admission
	t.hosts.Scan(func(_ string, other *storepb.Admission) bool {
		if isLive(other) && bytes.Equal(other.GetKeyHash(), host.GetKeyHash()) {
			same = append(same, other)
		}
		return true
	})
	for _, other := range same {
		gone, _ := proto.Clone(other).(*storepb.Admission)
		gone.Revoked = max(1, t.now)
		t.hosts.Set(gone.GetName(), gone)
	}
	t.revokeKey(string(host.GetKeyHash()), t.index)
	t.lastRevocation = t.index
	return answerHost(t.Host(name)), true
}

// revokeKey revokes a key. Beyond MaxRevoked it forgets the oldest revocation.
func (t *Table) revokeKey(keyHash string, index ids.Index) {
	t.revoked.Set(keyHash, index)
	t.revocations.Set(index, keyHash)
	if t.revoked.Len() > MaxRevoked {
		_, oldest, _ := t.revocations.PopMin()
		t.revoked.Delete(oldest)
	}
}

func isLive(host *storepb.Admission) bool { return host != nil && host.GetRevoked() == 0 }

func isRole(role storepb.Role) bool {
	return role == storepb.Role_SERVER || role == storepb.Role_CLIENT
}

func roleName(role storepb.Role) string {
	if role == storepb.Role_SERVER {
		return "server"
	}
	return "client"
}

func checkHost(host *storepb.Admission) string {
	switch {
	case host.GetName() == "" || len(host.GetName()) > maxName:
		return fmt.Sprintf("the name of a host has 1 to %d bytes", maxName)
	case !isRole(host.GetRole()):
		return "a host is a server or a client"
	case len(host.GetKeyHash()) != sha256.Size || len(host.GetAuthority()) != sha256.Size:
		return "the hash of a key, or a fingerprint, is no SHA-256"
	case len(host.GetCertificate()) == 0 || len(host.GetCertificate()) > maxCertificate || len(host.GetTokenId()) > maxTokenID:
		return fmt.Sprintf("a certificate has 1 to %d bytes, and the id of a token at most %d", maxCertificate, maxTokenID)
	}
	return ""
}

func answerHost(host *storepb.Admission) *storepb.Result {
	return &storepb.Result{Admissions: []*storepb.Admission{host}}
}
