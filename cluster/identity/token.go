package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Token lets a host join a cluster: it has the addresses, the CA's fingerprint, and a secret.
type Token struct {
	Role      Role
	Addresses []string    // of servers, HOST:PORT, 1 to 16 of at most 255 bytes
	Authority Fingerprint // of a CA of the cluster
	Made      time.Time   // cluster time in seconds: server certificates expired by then are refused
	ID        TokenID
	Secret    Secret
}

// NewToken creates a random id and secret.
func NewToken(role Role, addresses []string, authority Fingerprint, made time.Time) *Token {
	id, secret := drawToken()
	return &Token{
		Role: role, Addresses: addresses, Authority: authority, Made: made.UTC().Truncate(time.Second), ID: id, Secret: secret,
	}
}

// String identifies the token, without its secret.
func (t *Token) String() string { return fmt.Sprintf("token %v for a %v", t.ID, t.Role) }

// Faults of a token, wrapped by ParseToken.
var (
	ErrNotToken     = errors.New("this is no token: it begins with lockfs-server- or lockfs-client-")
	ErrTokenCut     = errors.New("the end of the token is missing: copy all of it, it is one line")
	ErrTokenDamaged = errors.New("the token is damaged: copy it again")
	ErrTokenNewer   = errors.New("the token was created by a newer version of lockfs: install that version here")
)

const (
	tokenVersion   = 1
	tokenAddresses = 16
	tokenAddress   = 255
	tokenChecksum  = 4
	// tokenFixed is the size before the addresses: version, authority, made, id, secret, number of
	// addresses.
	tokenFixed = 1 + sha256.Size + 8 + 8 + 16 + 1
	// tokenText is the largest length of a token with its prefix.
	tokenText = len("lockfs-server-") + (tokenFixed+tokenAddresses*(1+tokenAddress)+tokenChecksum+2)/3*4
)

// Strict, so a token has one text.
var tokenEncoding = base64.RawURLEncoding.Strict()

func tokenPrefix(role Role) string { return "lockfs-" + role.String() + "-" }

// Text returns the token as one line without spaces, with its secret: a reader of it can join.
func (t *Token) Text() (string, error) {
	if err := t.check(); err != nil {
		return "", err
	}
	out := make([]byte, 0, 128)
	out = append(out, tokenVersion)
	out = append(out, t.Authority[:]...)
	out = binary.BigEndian.AppendUint64(out, uint64(t.Made.Unix()))
	out = append(out, t.ID[:]...)
	out = append(out, t.Secret[:]...)
	out = append(out, byte(len(t.Addresses)))
	for _, address := range t.Addresses {
		out = append(append(out, byte(len(address))), address...)
	}
	out = append(out, checksum(t.Role, out)...)
	return tokenPrefix(t.Role) + tokenEncoding.EncodeToString(out), nil
}

// checksum includes the role, which is not in the content.
func checksum(role Role, content []byte) []byte {
	sum := sha256.Sum256(append([]byte(tokenPrefix(role)), content...))
	return sum[:tokenChecksum]
}

func (t *Token) check() error {
	if _, err := ParseRole(t.Role.String()); err != nil {
		return err
	}
	if count := len(t.Addresses); count == 0 || count > tokenAddresses {
		return fmt.Errorf("a token has 1 to %d addresses, not %d", tokenAddresses, count)
	}
	for _, address := range t.Addresses {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	return nil
}

func checkAddress(address string) error {
	if len(address) > tokenAddress {
		return fmt.Errorf("an address has at most %d bytes, not %d", tokenAddress, len(address))
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%q is no address", address)
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil && (host == "" || port == "") {
		err = fmt.Errorf("address %q: it is HOST:PORT", address)
	}
	return err
}

// IsToken reports whether a text looks like a token, damaged or not.
func IsToken(text string) bool {
	return strings.HasPrefix(text, tokenPrefix(Server)) || strings.HasPrefix(text, tokenPrefix(Client))
}

// ParseToken parses the result of Text, with white space around it. The error ([ErrNotToken] and so on) does
// not contain the secret.
func ParseToken(text string) (*Token, error) {
	text = strings.TrimSpace(text)
	token := new(Token)
	var encoded string
	for _, role := range []Role{Server, Client} {
		if rest, found := strings.CutPrefix(text, tokenPrefix(role)); found {
			token.Role, encoded = role, rest
		}
	}
	switch {
	case token.Role == 0:
		return nil, ErrNotToken
	case strings.ContainsAny(encoded, " \t\r\n"):
		return nil, fmt.Errorf("there is white space in it: %w", ErrTokenDamaged)
	case len(text) > tokenText:
		return nil, fmt.Errorf("it is too long: %w", ErrTokenDamaged)
	}
	content, err := decodeToken(encoded)
	if err != nil {
		return nil, err
	}
	if err := token.decode(content); err != nil {
		return nil, err
	}
	return token, nil
}

// decodeToken also detects a text cut inside a base64 group.
func decodeToken(encoded string) ([]byte, error) {
	if len(encoded) == 0 {
		return nil, ErrTokenCut
	}
	content, err := tokenEncoding.DecodeString(encoded)
	if err == nil {
		return content, nil
	}
	// If only the last group is wrong, the rest is missing.
	whole := len(encoded) - len(encoded)%4
	content, before := tokenEncoding.DecodeString(encoded[:whole])
	if before != nil || whole == len(encoded) || strings.Trim(encoded[whole:], tokenAlphabet) != "" {
		return nil, ErrTokenDamaged
	}
	if err := new(Token).decode(content); !errors.Is(err, ErrTokenCut) {
		return nil, ErrTokenDamaged
	}
	return nil, ErrTokenCut
}

const tokenAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func (t *Token) decode(content []byte) error {
	if len(content) == 0 {
		return ErrTokenCut
	}
	switch version := content[0]; {
	case version > tokenVersion:
		return ErrTokenNewer
	case version < tokenVersion:
		return ErrTokenDamaged
	case len(content) < tokenFixed:
		return ErrTokenCut
	}
	rest := content[1:]
	rest = rest[copy(t.Authority[:], rest):]
	made := binary.BigEndian.Uint64(rest)
	rest = rest[8:]
	rest = rest[copy(t.ID[:], rest):]
	rest = rest[copy(t.Secret[:], rest):]
	count := int(rest[0])
	rest = rest[1:]
	t.Addresses = nil
	for range min(count, tokenAddresses) {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return ErrTokenCut
		}
		t.Addresses = append(t.Addresses, string(rest[1:1+int(rest[0])]))
		rest = rest[1+int(rest[0]):]
	}
	if len(rest) < tokenChecksum {
		return ErrTokenCut
	}
	body := content[:len(content)-len(rest)]
	if !bytes.Equal(rest, checksum(t.Role, body)) || count > tokenAddresses || made > uint64(forever.Unix()) {
		return ErrTokenDamaged
	}
	t.Made = time.Unix(int64(made), 0).UTC()
	if err := t.check(); err != nil {
		return fmt.Errorf("%w (%w)", ErrTokenDamaged, err)
	}
	return nil
}
