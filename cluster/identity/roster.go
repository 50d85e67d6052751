package identity

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Roster lists servers and revoked keys, from a leader, for a host without the cluster's state.
type Roster struct {
	Version uint64 // of the leader; 0: no roster yet
	Members []Member
	Revoked []KeyHash
}

// Member is a present or former server.
type Member struct {
	Name string
	Key  KeyHash
}

// statuses returns the status of each key in the roster.
func (r *Roster) statuses() map[KeyHash]Status {
	judged := make(map[KeyHash]Status, len(r.Members)+len(r.Revoked))
	for _, member := range r.Members {
		judged[member.Key] = CertificateOnly
	}
	for _, key := range r.Revoked {
		judged[key] = Revoked
	}
	return judged
}

// rosterFile is part of an identity directory.
const rosterFile = "roster"

// The lines of a roster file.
const (
	versionWord = "version"
	memberWord  = "member"
	revokedWord = "revoked"
)

func (r *Roster) lines() []byte {
	var out bytes.Buffer
	fmt.Fprintln(&out, versionWord, strconv.FormatUint(r.Version, 16))
	for _, member := range r.Members {
		fmt.Fprintln(&out, memberWord, member.Name, member.Key)
	}
	for _, key := range r.Revoked {
		fmt.Fprintln(&out, revokedWord, key)
	}
	return out.Bytes()
}

func parseRoster(content []byte) (*Roster, error) {
	r := new(Roster)
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		var err error
		switch {
		case words[0] == versionWord && len(words) == 2:
			r.Version, err = strconv.ParseUint(words[1], 16, 64)
		case words[0] == memberWord && len(words) == 3:
			member := Member{Name: words[1]}
			member.Key, err = parseKeyHash(words[2])
			r.Members = append(r.Members, member)
		case words[0] == revokedWord && len(words) == 2:
			var key KeyHash
			key, err = parseKeyHash(words[1])
			r.Revoked = append(r.Revoked, key)
		default:
			err = errors.New("it is no line of a roster")
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
	}
	return r, nil
}

func parseKeyHash(text string) (key KeyHash, err error) {
	decoded, err := hex.DecodeString(text)
	if err == nil && len(decoded) != len(key) {
		err = fmt.Errorf("a hash has %d bytes", len(key))
	}
	copy(key[:], decoded)
	return key, err
}

// readRoster returns an empty roster if the directory has none.
func readRoster(dir string) (*Roster, error) {
	path := filepath.Join(dir, rosterFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return new(Roster), nil
	}
	if err != nil {
		return nil, err
	}
	r, err := parseRoster(content)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; remove it, and the servers prove anew that they are of the cluster", path, err)
	}
	return r, nil
}
