package identity

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Role is what a host may be for others.
type Role uint8

const (
	// Server is a host with a server; it may also mount.
	Server Role = iota + 1
	// Client is a host that only mounts.
	Client
)

// String is "server" or "client".
func (r Role) String() string {
	switch r {
	case Server:
		return "server"
	case Client:
		return "client"
	default:
		return fmt.Sprintf("role %d", uint8(r))
	}
}

// ParseRole knows "server" and "client".
func ParseRole(text string) (Role, error) {
	for _, role := range []Role{Server, Client} {
		if text == role.String() {
			return role, nil
		}
	}
	return 0, fmt.Errorf("%q is no role: it is server or client", text)
}

// ServerName is what the certificates of all servers are for.
const ServerName = "server.lockfs"

const clientSuffix = ".client.lockfs"

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// ValidHost tells whether a host may be called so: 1 to 63 letters, digits, '.', '_' and '-', at both ends a letter or digit.
func ValidHost(host string) bool { return hostName.MatchString(host) }

// Name is who a certificate says that its holder is. Hosts' names are compared as they are, with upper and lower case.
type Name struct {
	Role Role
	Host string
}

// ParseName makes a name of a role and a host that [ValidHost] allows.
func ParseName(role Role, host string) (Name, error) {
	if role != Server && role != Client {
		return Name{}, fmt.Errorf("%v is no role: it is server or client", role)
	}
	if !ValidHost(host) {
		return Name{}, fmt.Errorf("%q is no name of a host: it has 1 to 63 letters, digits, '.', '_' and '-', at both ends a letter or digit", host)
	}
	return Name{Role: role, Host: host}, nil
}

// String is the name as certificates have it: HOST.server.lockfs or HOST.client.lockfs.
func (n Name) String() string {
	if n.Role == Server {
		return n.Host + "." + ServerName
	}
	return n.Host + clientSuffix
}

// dnsNames is what a leaf of that name is for.
func (n Name) dnsNames() []string {
	if n.Role == Server {
		return []string{ServerName, n.String()}
	}
	return []string{n.String()}
}

// NameOf is whose certificate it is. It refuses one that is for anything besides, and looks at nothing else.
func NameOf(certificate *x509.Certificate) (Name, error) {
	name, err := nameOf(certificate.DNSNames)
	if err != nil {
		return Name{}, fmt.Errorf("a certificate for %q: %w", certificate.DNSNames, err)
	}
	if len(certificate.IPAddresses)+len(certificate.EmailAddresses)+len(certificate.URIs) > 0 {
		return Name{}, fmt.Errorf("the certificate of %v is for other things too", name)
	}
	return name, nil
}

func nameOf(dnsNames []string) (Name, error) {
	if len(dnsNames) > 0 {
		last := dnsNames[len(dnsNames)-1]
		name := Name{Role: Client}
		host, found := strings.CutSuffix(last, clientSuffix)
		if !found {
			name.Role = Server
			host, found = strings.CutSuffix(last, "."+ServerName)
		}
		name.Host = host
		if found && ValidHost(host) && slices.Equal(dnsNames, name.dnsNames()) {
			return name, nil
		}
	}
	return Name{}, fmt.Errorf("it names no host of a cluster")
}
