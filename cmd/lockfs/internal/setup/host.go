package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// host is this host as in its settings.
type host struct {
	settings *settings
	role     identity.Role
	name     string // in its certificate
	mount    string
	data     string // of a server

	upgradedFrom string // version of the program before an upgrade by this command
}

const (
	defaultMount = "/locks"
	defaultData  = cli.DefaultData
)

// thisHost returns nil if this host is not set up.
func thisHost() (*host, error) {
	s, there, err := readSettings(settingsFile)
	if err != nil || !there || s.get(roleVariable) == "" { // as installed by a package
		return nil, err
	}
	role, err := identity.ParseRole(s.get(roleVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", settingsFile, roleVariable, err)
	}
	h := &host{settings: s, role: role, name: s.get("LOCKFS_NAME"), mount: s.get(mountVariable), data: s.get("LOCKFS_DATA")}
	if h.mount == "" || h.role == identity.Server && (h.name == "" || h.data == "") {
		return nil, fmt.Errorf("%s is incomplete: remove it, and run `lockfs up` with a token", settingsFile)
	}
	return h, nil
}

// identityDir returns the directory of the key and certificate.
func (h *host) identityDir() string {
	if h.role == identity.Server {
		return filepath.Join(h.data, consensus.CredentialsDir)
	}
	return filepath.Join(filepath.Dir(settingsFile), "identity")
}

// advertised returns the address at which others reach this server; empty for a client.
func (h *host) advertised() string {
	if address := h.settings.get(advertiseVariable); address != "" {
		return address
	}
	return h.settings.get(addrVariable)
}

// socket returns the socket of the daemon.
func (h *host) socket() string {
	if h.role == identity.Server {
		return cli.ServerSocket(h.name)
	}
	return cli.MountSocket(h.mount)
}

// service returns the service of the daemon.
func (h *host) service() (service, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if systemdRuns() {
		return &systemd{role: h.role, program: program, data: h.data}, nil
	}
	return &background{
		program: program, command: commandOf(h.role, h.mount), more: h.settings.environment, socket: h.socket(), mount: h.mount,
	}, nil
}

// needRoot returns an error unless this process is root's.
func needRoot(command string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return errors.New(command + " needs root: run it with sudo")
}
