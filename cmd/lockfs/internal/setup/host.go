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

// host is this host as its settings describe it.
type host struct {
	settings *settings
	role     identity.Role
	name     string // as its certificate has it
	mount    string
	data     string // of a server
}

const (
	defaultMount = "/locks"
	defaultData  = "/var/lib/lockfs"
)

// thisHost answers nil if this host is not set up.
func thisHost() (*host, error) {
	s, there, err := readSettings(settingsFile)
	if err != nil || !there || s.get(roleVariable) == "" { // as packages bring it
		return nil, err
	}
	role, err := identity.ParseRole(s.get(roleVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", settingsFile, roleVariable, err)
	}
	h := &host{settings: s, role: role, name: s.get("LOCKFS_NAME"), mount: s.get(mountVariable), data: s.get("LOCKFS_DATA")}
	if h.mount == "" || h.role == identity.Server && (h.name == "" || h.data == "") {
		return nil, fmt.Errorf("%s is not complete: remove it, and give `lockfs up` a token", settingsFile)
	}
	return h, nil
}

// identityDir is where its key and certificate are.
func (h *host) identityDir() string {
	if h.role == identity.Server {
		return filepath.Join(h.data, consensus.CredentialsDir)
	}
	return filepath.Join(filepath.Dir(settingsFile), "identity")
}

// socket is where its daemon is asked.
func (h *host) socket() string {
	if h.role == identity.Server {
		return cli.ServerSocket(h.name)
	}
	return cli.MountSocket(h.mount)
}

// service is what keeps its daemon running.
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

// needRoot is for commands that change what is root's.
func needRoot(command string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return errors.New(command + " changes what belongs to root: run it with sudo")
}
