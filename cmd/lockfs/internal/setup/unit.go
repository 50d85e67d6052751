package setup

import (
	"fmt"
	"strings"

	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// daemonOf returns the command of the daemon for a role, which is also in the name of its unit.
func daemonOf(role identity.Role) string {
	if role == identity.Client {
		return "mount"
	}
	return "server"
}

// unitName returns the name of the unit for a role.
func unitName(role identity.Role) string { return "lockfs-" + daemonOf(role) + ".service" }

// commandOf returns the arguments of the daemon; its flags are variables in settingsFile.
func commandOf(role identity.Role, mountDir string) []string {
	if role == identity.Client {
		return []string{daemonOf(role), mountDir}
	}
	return []string{daemonOf(role)}
}

// unitText returns the unit for hosts and packages. The unit is ready once the mount works, which may wait
// for a quorum. On reload, the newest program takes over the mount. systemd signals the main process only,
// because the guard of the mount has to outlive it. Each unit has the alias lockfs.service. A server starts
// after the file system of its data directory is mounted.
func unitText(role identity.Role, program, data string) string {
	more, memory := "", "50%"
	dependencies := ""
	if role == identity.Server {
		dependencies = "RequiresMountsFor=" + unitPath(data) + "\n"
		more = fmt.Sprintf("# An administrator has to act first, see \"lockfs server --help\".\nRestartPreventExitStatus=%d\n", cli.ExitWithoutCluster)
		memory = "90%"
	}
	return fmt.Sprintf(`# Of lockfs, started by "lockfs up". For other settings see %[1]s, or "systemctl edit %[2]s".
[Unit]
Description=lockfs %[3]s
Documentation=man:lockfs-%[3]s(1) man:lockfs-operation(7)
Wants=network-online.target
After=network-online.target
%[6]sStartLimitIntervalSec=0

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
%[7]sKillMode=process
LimitNOFILE=524288

# When memory runs out, the kernel ends other programs first, and systemd leaves the guard of the mount alone. The default of
# --max-bytes is a quarter of MemoryMax.
OOMScoreAdjust=-900
OOMPolicy=continue
MemoryMax=%[8]s

%[9]s
[Install]
WantedBy=multi-user.target
Alias=lockfs.service
`, settingsFile, unitName(role), daemonOf(role), unitWord(program), strings.Join(commandOf(role, "${"+mountVariable+"}"), " "),
		dependencies, more, memory, confinement)
}

// confinement has the restrictions of both units.
const confinement = `# The daemon needs the mount namespace of the host: in any other one it mounts for itself alone, and every program on this host would
# lock in the bare directory. So no setting may be added that makes one, among them ProtectSystem=, ProtectHome=, ProtectProc=,
# ProtectKernelTunables=, ProtectKernelModules=, ProtectKernelLogs=, ProtectControlGroups=, PrivateTmp=, PrivateDevices=,
# PrivateMounts=, ReadWritePaths=, ReadOnlyPaths=, InaccessiblePaths=, BindPaths=, TemporaryFileSystem= and RootDirectory=.
# ProtectHostname= and PrivateUsers= make other namespaces, in which lockfs takes all programs of this host for those of a container.
# A program that takes over the mount in an upgrade keeps the settings with which the unit was started last.
NoNewPrivileges=yes
# Mount, look below a mount, and read the host name that a container has.
CapabilityBoundingSet=CAP_SYS_ADMIN
# See which processes of other users hold locks, and how they ended.
CapabilityBoundingSet=CAP_SYS_PTRACE
# Make the bare directory of the mount immutable.
CapabilityBoundingSet=CAP_LINUX_IMMUTABLE
# Mount, or write backups, in a directory of another user; read what processes of other users have open.
CapabilityBoundingSet=CAP_DAC_OVERRIDE
# Set the attribute of such a directory; replace a file of another user in a directory for backups that all users share.
CapabilityBoundingSet=CAP_FOWNER
# Learn from the kernel how a process ended, before Linux 6.15.
CapabilityBoundingSet=CAP_NET_ADMIN
# Listen on a port below 1024 (--addr, --http-addr).
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
DevicePolicy=closed
DeviceAllow=/dev/fuse rw
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
# Only to read the host name that a container has.
RestrictNamespaces=uts
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
# System calls that no version needs. An allow list would end the next version, which takes over the mount under this filter.
SystemCallFilter=~@aio @clock @cpu-emulation @debug @keyring @module @obsolete @privileged @raw-io @reboot @resources @swap
SystemCallErrorNumber=EPERM
# The daemon makes a mount point that is missing, with the directories above it, for all users.
UMask=0022
`

// unitWord escapes a word of a command line for systemd.service(5).
func unitWord(word string) string { return strings.ReplaceAll(unitPath(word), `$`, `$$`) }

// unitPath escapes a path in another setting.
func unitPath(path string) string {
	escaped := strings.NewReplacer(`%`, `%%`, `\`, `\\`, `"`, `\"`).Replace(path)
	if strings.ContainsAny(path, " \t'\"\\;") {
		return `"` + escaped + `"`
	}
	return escaped
}
