package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Hostname returns the host name seen by a thread, which differs in a container. It is ErrUnknown if the
// thread or its namespace cannot be read.
func Hostname(thread int) (string, error) {
	namespace, err := openNamespace(thread, "uts")
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(namespace.fd) }()
	var own unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/uts", &own); err != nil {
		return "", os.NewSyscallError("stat", err)
	}
	if namespace.inode == own.Ino {
		return os.Hostname()
	}
	return namespace.hostname()
}

func (n namespace) hostname() (name string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Unlocked only after the return to the own namespace: otherwise the thread ends with its
		// goroutine.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// Another thread does it while this goroutine keeps the main thread.
			name, err = n.hostname()
			runtime.UnlockOSThread()
			return
		}
		if err = unix.Setns(n.fd, unix.CLONE_NEWUTS); err != nil {
			err = procError("setns", "uts", err)
			runtime.UnlockOSThread()
			return
		}
		var uts unix.Utsname
		if err = unix.Uname(&uts); err == nil {
			name = unix.ByteSliceToString(uts.Nodename[:])
		}
		if unix.Setns(ownHostname(), unix.CLONE_NEWUTS) == nil { // a new thread costs more than everything else here
			runtime.UnlockOSThread()
		}
	}()
	<-done
	return name, err
}

// ownHostname is a descriptor of the main thread's namespace; negative: it cannot be opened.
var ownHostname = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/self/ns/uts", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// MachineID returns 32 hexadecimal digits which identify this machine across renames and boots. It is a hash
// of the machine-id(5), which has to stay confidential. It returns an error if the machine has no id. Copies
// of a machine's disk have the same id.
func MachineID() (string, error) { return machineID("/etc/machine-id") }

func machineID(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	id := bytes.TrimSpace(content)
	if raw, err := hex.DecodeString(string(id)); err != nil || len(raw) != 16 { // also "uninitialized"
		return "", fmt.Errorf("%s: not 32 hexadecimal digits", path)
	}
	sum := sha256.Sum256(append([]byte("lockfs:"), id...))
	return hex.EncodeToString(sum[:])[:32], nil
}
