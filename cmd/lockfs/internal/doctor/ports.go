package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
)

func lookAtPorts(_ context.Context, h *host) []Finding {
	var found []Finding
	for _, address := range cli.DefaultAddresses() {
		_, port, _ := net.SplitHostPort(address)
		err := h.listen(":" + port)
		switch {
		case err == nil:
			found = append(found, ok("port %s is free", port))
		case !errors.Is(err, unix.EADDRINUSE):
			found = append(found, unknown("", "port %s: %v", port, err))
		default:
			found = append(found, h.userOf(port))
		}
	}
	return found
}

func tryListen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// userOf returns the process with a port.
func (h *host) userOf(port string) Finding {
	name, pid, err := h.listenerOn(port)
	switch {
	case err != nil || name == "":
		return unknown("run lockfs doctor as root", "port %s is in use by a process of another user", port)
	case name == "lockfs":
		return ok("port %s belongs to lockfs, process %d", port, pid)
	}
	return warning("give lockfs another port, or stop the process", "port %s is in use by %s, process %d", port, name, pid)
}

// listenerOn returns the process with a listener on a port, if visible to this user.
func (h *host) listenerOn(port string) (name string, pid int, err error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0, err
	}
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(h.path("proc/net/" + table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == listening && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	descriptors, err := filepath.Glob(h.path("proc/[0-9]*/fd/*"))
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err == nil && sockets[target] {
			process := filepath.Dir(filepath.Dir(descriptor))
			comm, err := os.ReadFile(filepath.Join(process, "comm"))
			pid, _ := strconv.Atoi(filepath.Base(process))
			return strings.TrimSpace(string(comm)), pid, err
		}
	}
	return "", 0, err
}

// listening is the state TCP_LISTEN in /proc/net/tcp.
const listening = "0A"
