package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lockfs/cluster/atomicfile"
	"lockfs/cluster/identity"
)

// Directories of units: those of the host override those of packages.
const (
	unitDir     = "/etc/systemd/system"
	packagedDir = "/usr/lib/systemd/system"
)

// systemd is a unit of the system manager.
type systemd struct {
	role    identity.Role
	program string
	data    string // directory of a server
}

func (s *systemd) file() string { return filepath.Join(unitDir, unitName(s.role)) }

// install leaves an equal unit to its package, and with it upgrades of the unit.
func (s *systemd) install() (changed bool, err error) {
	text := []byte(unitText(s.role, s.program, s.data))
	if packaged, err := os.ReadFile(filepath.Join(packagedDir, unitName(s.role))); err == nil && bytes.Equal(packaged, text) {
		return s.removeOwn()
	}
	there, err := os.ReadFile(s.file())
	if err == nil && bytes.Equal(there, text) {
		return false, nil
	}
	if err := atomicfile.ReplaceForAll(s.file(), text); err != nil {
		return false, fmt.Errorf("install %s: %w", unitName(s.role), err)
	}
	return true, nil
}

// removeOwn removes the unit of this host.
func (s *systemd) removeOwn() (changed bool, err error) {
	err = os.Remove(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove %s: %w", unitName(s.role), err)
	}
	return true, nil
}

// isInstalled reports whether a unit exists.
func (s *systemd) isInstalled() bool {
	return slices.ContainsFunc([]string{unitDir, packagedDir}, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, unitName(s.role)))
		return err == nil
	})
}

func (s *systemd) start(ctx context.Context) error {
	if err := systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	if err := systemctl(ctx, "enable", unitName(s.role)); err != nil {
		return err
	}
	return systemctl(ctx, "start", "--no-block", unitName(s.role))
}

func (s *systemd) stop(ctx context.Context, force bool) error {
	if !s.isInstalled() {
		return nil
	}
	if err := systemctl(ctx, "disable", unitName(s.role)); err != nil {
		return err
	}
	if force {
		limited, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		if systemctl(limited, "stop", unitName(s.role)) == nil {
			return nil
		}
		if err := systemctl(ctx, "kill", "--signal=SIGKILL", unitName(s.role)); err != nil {
			return err
		}
	}
	return systemctl(ctx, "stop", unitName(s.role))
}

func (s *systemd) remove() error {
	if _, err := s.removeOwn(); err != nil {
		return err
	}
	return systemctl(context.Background(), "daemon-reload")
}

// running includes a unit between two attempts, and one whose start is queued.
func (s *systemd) running(ctx context.Context) (bool, error) {
	output, err := exec.CommandContext(ctx, "systemctl", "show", "--property=ActiveState", "--property=Job", unitName(s.role)).Output()
	if err != nil {
		return false, fmt.Errorf("state of %s: %w", unitName(s.role), err)
	}
	of := make(map[string]string)
	for line := range strings.Lines(string(output)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		of[name] = value
	}
	switch of["ActiveState"] {
	case "active", "activating", "reloading":
		return true, nil
	case "inactive", "failed":
		return of["Job"] != "" && of["Job"] != "0", nil // a start is queued
	}
	return false, nil
}

func (s *systemd) pid(ctx context.Context) (int, error) {
	output, err := exec.CommandContext(ctx, "systemctl", "show", "--property=MainPID", "--value", unitName(s.role)).Output()
	if err != nil {
		return 0, fmt.Errorf("process of %s: %w", unitName(s.role), err)
	}
	return strconv.Atoi(strings.TrimSpace(string(output)))
}

func (s *systemd) reload(ctx context.Context) error {
	return systemctl(ctx, "reload", unitName(s.role))
}

func (s *systemd) String() string { return unitName(s.role) + ", enabled" }

func (s *systemd) trouble(ctx context.Context) string {
	output, _ := exec.CommandContext(ctx, "journalctl", "--unit="+unitName(s.role), "--lines=5", "--output=cat", "--quiet").Output()
	return "journalctl -u " + unitName(s.role) + " ends with:\n" + strings.TrimSpace(string(output))
}

func systemctl(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
