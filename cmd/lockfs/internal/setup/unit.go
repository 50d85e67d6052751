package setup

import (
	"fmt"
	"strings"

	"lockfs/cluster/identity"
)

// daemonOf is the command of the daemon for a role, and the name of its unit.
func daemonOf(role identity.Role) string {
	if role == identity.Client {
		return "mount"
	}
	return "server"
}

// unitName is the unit of systemd for a host in a role.
func unitName(role identity.Role) string { return "lockfs-" + daemonOf(role) + ".service" }

// commandOf is the command line of the daemon, after the program; its flags are variables of settingsFile.
func commandOf(role identity.Role, mountDir string) []string {
	if role == identity.Client {
		return []string{daemonOf(role), mountDir}
	}
	return []string{daemonOf(role)}
}

// unitText is the unit, for hosts and for packages. It is ready once the locks are there, however long the others take to come.
// To reload it is to have the newest program go on with the mount. Only the main process is told to stop: the guard of the mount
// has to outlive it. It is lockfs.service too, whichever role the host has. Nothing there may give the daemon a view of the file system of its own: others would not see what it mounts.
func unitText(role identity.Role, program string) string {
	return fmt.Sprintf(`# Of lockfs, started by "lockfs up". For other settings see %[1]s, or "systemctl edit %[2]s".
[Unit]
Description=lockfs %[3]s
Documentation=man:lockfs-%[3]s(1) man:lockfs-operation(7)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
EnvironmentFile=%[1]s
ExecStartPre=-%[4]s mount-point protect
ExecStart=%[4]s %[5]s
ExecReload=kill -HUP $MAINPID
TimeoutStartSec=infinity
WatchdogSec=5min
Restart=on-failure
RestartSec=250ms
KillMode=process
LimitNOFILE=524288

[Install]
WantedBy=multi-user.target
Alias=lockfs.service
`, settingsFile, unitName(role), daemonOf(role), unitWord(program), strings.Join(commandOf(role, "${"+mountVariable+"}"), " "))
}

// unitWord writes a word of a command line as systemd.service(5) reads it.
func unitWord(word string) string {
	escaped := strings.NewReplacer(`%`, `%%`, `$`, `$$`, `\`, `\\`, `"`, `\"`).Replace(word)
	if strings.ContainsAny(word, " \t'\"\\;") {
		return `"` + escaped + `"`
	}
	return escaped
}
