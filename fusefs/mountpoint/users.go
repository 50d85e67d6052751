package mountpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// User is a process that uses a mount.
type User struct {
	PID  int
	Name string // as in ps; programs choose their names freely
	Uses string // in words: "its working directory"
}

// Users returns the processes that use the mount at a directory, also through other mount points, except this
// process. It finds only those visible to this user. It does not touch the mount.
func Users(dir string) ([]User, error) {
	m, err := mountedAt(dir)
	if err != nil || m == nil {
		return nil, err
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var users []User
	for _, process := range processes {
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if uses := usesOf(process, m.device); uses != "" {
			name, _ := os.ReadFile(process + "/comm")
			users = append(users, User{pid, strings.TrimSpace(string(name)), uses})
		}
	}
	slices.SortFunc(users, func(a, b User) int { return a.PID - b.PID })
	return users, nil
}

// usesOf describes a process's use of a file system; empty: none, or the process is gone.
func usesOf(process string, device uint32) string {
	text, err := os.ReadFile(process + "/mountinfo")
	if err != nil {
		return ""
	}
	mounts := slices.DeleteFunc(parseMounts(string(text)), func(m mountEntry) bool { return m.device != device })
	if len(mounts) == 0 {
		return ""
	}
	for link, uses := range map[string]string{"cwd": "its working directory", "root": "its root directory"} {
		if path, err := os.Readlink(filepath.Join(process, link)); err == nil && slices.ContainsFunc(mounts, func(m mountEntry) bool {
			return path == m.point || strings.HasPrefix(path, m.point+"/")
		}) {
			return uses
		}
	}
	infos, _ := filepath.Glob(process + "/fdinfo/*")
	for _, info := range infos {
		text, err := os.ReadFile(info)
		if err != nil {
			continue
		}
		if id, err := mountID(string(text)); err == nil && slices.ContainsFunc(mounts, func(m mountEntry) bool { return m.id == id }) {
			path, _ := os.Readlink(filepath.Join(process, "fd", filepath.Base(info)))
			return "has " + path + " open"
		}
	}
	// A mapped file may be closed.
	maps, _ := os.ReadFile(process + "/maps")
	if strings.Contains(string(maps), fmt.Sprintf(" %02x:%02x ", device>>20, device&(1<<20-1))) {
		return "has a file mapped"
	}
	return ""
}
