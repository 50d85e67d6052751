package mountpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FileSystem is a file system without a directory yet.
type FileSystem struct{ root *os.File }

// Close ends it, unless it is attached.
func (fs *FileSystem) Close() error { return fs.root.Close() }

// setting is a parameter of a file system; without a value, a flag.
type setting struct{ name, value string }

// maxSource is the maximum length of a source (fsconfig(2)).
const maxSource = 255

// ShownSource returns a source as in /proc/mounts: the kernel keeps at most 255 bytes.
func ShownSource(source string) string {
	if len(source) <= maxSource {
		return source
	}
	const cut = "..."
	return source[:maxSource-len(cut)] + cut
}

// NewFuse creates a FUSE file system for all users, served through a descriptor of /dev/fuse. Options are
// FUSE's own and the file-system independent ones of mount(8).
func NewFuse(source string, device, maxRead int, options []string) (*FileSystem, error) {
	attributes := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	settings := []setting{
		{"source", ShownSource(source)}, {"subtype", FSType}, {"fd", strconv.Itoa(device)},
		{"rootmode", strconv.FormatUint(unix.S_IFDIR, 8)},
		{"user_id", strconv.Itoa(os.Geteuid())}, {"group_id", strconv.Itoa(os.Getegid())},
		{"allow_other", ""}, {"max_read", strconv.Itoa(maxRead)},
	}
	for _, option := range options {
		switch option {
		case "nosuid":
			attributes |= unix.MOUNT_ATTR_NOSUID
		case "suid":
			attributes &^= unix.MOUNT_ATTR_NOSUID
		case "nodev":
			attributes |= unix.MOUNT_ATTR_NODEV
		case "dev":
			attributes &^= unix.MOUNT_ATTR_NODEV
		case "noexec":
			attributes |= unix.MOUNT_ATTR_NOEXEC
		case "exec":
			attributes &^= unix.MOUNT_ATTR_NOEXEC
		default:
			name, value, _ := strings.Cut(option, "=")
			settings = append(settings, setting{name, value})
		}
	}
	return newFileSystem("fuse", settings, attributes)
}

// newFileSystem creates a file system of a type known to the kernel.
func newFileSystem(kind string, settings []setting, attributes int) (*FileSystem, error) {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer func() { _ = unix.Close(context) }()
	for _, s := range settings {
		if s.value == "" {
			err = unix.FsconfigSetFlag(context, s.name)
		} else {
			err = unix.FsconfigSetString(context, s.name, s.value)
		}
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", s.name, explain(context, err))
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return nil, explain(context, os.NewSyscallError("fsconfig", err))
	}
	root, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	return &FileSystem{os.NewFile(uintptr(root), kind)}, nil
}

// explain adds the kernel's messages to an error.
func explain(context int, err error) error {
	for message := make([]byte, 256); ; {
		n, failed := unix.Read(context, message)
		if failed != nil || n <= 0 {
			return err
		}
		err = errors.Join(err, errors.New(string(bytes.TrimSpace(message[:n]))))
	}
}
