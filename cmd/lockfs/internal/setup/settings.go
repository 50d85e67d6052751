package setup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockfs/cluster/atomicfile"
	"lockfs/cmd/lockfs/internal/cli"
)

// settingsFile has the environment variables of the daemon in systemd's format.
const settingsFile = cli.SettingsFile

const settingsHead = `# Settings of lockfs on this host, written by "lockfs up", which keeps other lines. Every flag of "lockfs server" or
# "lockfs mount" can be set here: --max-bytes as LOCKFS_MAX_BYTES. Apply changes with "lockfs down" and "lockfs up".
`

// Variables of settingsFile without a flag.
const (
	roleVariable  = cli.RoleVariable
	mountVariable = cli.MountVariable // a flag of lockfs server, the argument of lockfs mount
)

// Variables for flags of the daemon.
const (
	nameVariable      = "LOCKFS_NAME"
	dataVariable      = "LOCKFS_DATA"
	addrVariable      = "LOCKFS_ADDR"
	advertiseVariable = "LOCKFS_ADVERTISE"
	nonvoterVariable  = "LOCKFS_NONVOTER" // without effect after the join
	identityVariable  = "LOCKFS_IDENTITY"
)

// settings are lines NAME=VALUE and other lines, in their order in the file.
type settings struct{ lines []string }

// readSettings reads a file; ok is false if it does not exist.
func readSettings(file string) (s *settings, ok bool, err error) {
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &settings{lines: strings.Split(strings.TrimSuffix(settingsHead, "\n"), "\n")}, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("settings of this host: %w", err)
	}
	return &settings{lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")}, true, nil
}

// write writes the file for root only, if it changes.
func (s *settings) write(file string) (changed bool, err error) {
	text := []byte(strings.Join(s.lines, "\n") + "\n")
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, text) {
		return false, os.Chmod(file, 0o600)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return false, fmt.Errorf("settings of this host: %w", err)
	}
	if err := atomicfile.Replace(file, text); err != nil {
		return false, fmt.Errorf("settings of this host: %w", err)
	}
	return true, nil
}

// get returns the value of a variable, or "".
func (s *settings) get(name string) string {
	value := ""
	for _, line := range s.lines {
		if is, v := cli.Assignment(line); is == name {
			value = v // the last one counts
		}
	}
	return value
}

// set sets a variable, or removes it if the value is empty.
func (s *settings) set(name, value string) {
	at := slices.IndexFunc(s.lines, func(line string) bool { is, _ := cli.Assignment(line); return is == name })
	switch {
	case at < 0 && value != "":
		s.lines = append(s.lines, name+"="+quote(value))
	case at >= 0 && value == "":
		s.lines = slices.DeleteFunc(s.lines, func(line string) bool { is, _ := cli.Assignment(line); return is == name })
	case at >= 0 && s.get(name) != value:
		s.lines[at] = name + "=" + quote(value)
		rest := slices.DeleteFunc(slices.Clone(s.lines[at+1:]), func(line string) bool { is, _ := cli.Assignment(line); return is == name })
		s.lines = append(s.lines[:at+1], rest...)
	}
}

// environment returns the variables for a child process.
func (s *settings) environment() []string {
	var variables []string
	for _, line := range s.lines {
		if name, value := cli.Assignment(line); name != "" {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// quote quotes a value for systemd (systemd.exec(5), EnvironmentFile).
func quote(value string) string {
	if !strings.ContainsAny(value, " \t#;'"+cli.MustEscape) {
		return value
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(value) {
		if strings.IndexByte(cli.MustEscape, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}
