package identity

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Role is the role of a host.
type Role uint8

const (
	// Server is a host with a server; it may also mount.
	Server Role = iota + 1
	// Client is a host with mounts only.
	Client
)

// String returns "server" or "client".
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

// ParseRole parses "server" and "client".
func ParseRole(text string) (Role, error) {
	for _, role := range []Role{Server, Client} {
		if text == role.String() {
			return role, nil
		}
	}
	return 0, fmt.Errorf("%q is no role: it is server or client", text)
}

// ServerName is a name in the certificates of all servers.
const ServerName = "server.lockfs"

const clientSuffix = ".client.lockfs"

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// ValidHost reports whether a name has 1 to 63 letters, digits, '.', '_' and '-', with a letter or digit
// at both ends.
func ValidHost(host string) bool { return hostName.MatchString(host) }

// Name is the name in a certificate. Host names are case-sensitive.
type Name struct {
	Role Role
	Host string
}

// ParseName makes a name of a role and a valid host ([ValidHost]).
func ParseName(role Role, host string) (Name, error) {
	if role != Server && role != Client {
		return Name{}, fmt.Errorf("%v is no role: it is server or client", role)
	}
	if !ValidHost(host) {
		return Name{}, fmt.Errorf("%q is no name of a host: it has 1 to 63 letters, digits, '.', '_' and '-', at both ends a letter or digit", host)
	}
	return Name{Role: role, Host: host}, nil
}

// String returns the name as in certificates: HOST.server.lockfs or HOST.client.lockfs.
func (n Name) String() string {
	if n.Role == Server {
		return n.Host + "." + ServerName
	}
	return n.Host + clientSuffix
}

// dnsNames returns the DNS names of a leaf.
func (n Name) dnsNames() []string {
	if n.Role == Server {
		return []string{ServerName, n.String()}
	}
	return []string{n.String()}
}

// NameOf returns the name in a certificate. It refuses a certificate with other names, and checks nothing
// else.
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
