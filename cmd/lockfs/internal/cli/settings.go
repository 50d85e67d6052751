package cli

import "strings"

// SettingsFile has the settings of `lockfs up` on this host as variables in systemd's format.
const SettingsFile = "/etc/lockfs/lockfs.env"

// DefaultData is the data directory of a server of `lockfs up`.
const DefaultData = "/var/lib/lockfs"

// Variables of SettingsFile for the mount of this host. Without a role the host has none.
const (
	RoleVariable  = "LOCKFS_ROLE"
	MountVariable = "LOCKFS_MOUNT"
)

// MustEscape are the special characters in double quotes.
const MustEscape = "\"\\$`"

// Assignment reads a line of SettingsFile. The name is empty if the line sets no variable.
func Assignment(line string) (name, value string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || line[0] == ';' {
		return "", ""
	}
	name, value, is := strings.Cut(line, "=")
	if !is {
		return "", ""
	}
	return strings.TrimSpace(name), unquote(strings.TrimSpace(value))
}

func unquote(value string) string {
	if len(value) >= 2 && value[0] == '\'' && value[len(value)-1] == '\'' {
		return value[1 : len(value)-1]
	}
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return value
	}
	var b strings.Builder
	for i := 1; i < len(value)-1; i++ {
		if value[i] == '\\' && i+1 < len(value)-1 && strings.IndexByte(MustEscape, value[i+1]) >= 0 {
			i++
		}
		b.WriteByte(value[i])
	}
	return b.String()
}
