package fusefs

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/inotify"
	"lockfs/fusefs/mountpoint"
	"lockfs/fusefs/orphanreply"
	"lockfs/fusefs/serve"
)

const (
	fsName = "lockfs"

	// maxBackground allows many RELEASE requests to wait for the cluster.
	maxBackground = 64

	opGetAttr  = 3  // FUSE_GETATTR
	opGetXAttr = 22 // FUSE_GETXATTR
)

// Mounted is a mount of the namespace.
type Mounted struct {
	dir    string
	logger *slog.Logger
	fs     *dispatcher
	ops    Operator
	init   *serve.Init
	server *serve.Server
	served chan struct{} // closed at the end of the connection

	connection *mountpoint.Connection
	following  *following
	serving    sync.WaitGroup

	unmount sync.Mutex
	left    chan struct{} // closed at an unmount while in use
}

// Mount mounts the namespace at an existing directory and serves it in the background. root mounts for all
// users. Other users mount for themselves, with fusermount3. Mount cleans up after a dead process, and
// refuses a directory with a working lockfs mount.
//
// After it, this process must not touch the directory.
func Mount(dir string, ops Operator, opts Options) (*Mounted, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	place, err := mountpoint.Prepare(dir, opts.Logger)
	if err != nil {
		return nil, fmt.Errorf("cannot mount at %s: %w", dir, err)
	}
	defer func() { _ = place.Close() }()
	if err := mountpoint.CheckFuse(); err != nil {
		return nil, fmt.Errorf("cannot mount at %s: %w", dir, err)
	}
	if limit := fuseattr.LongestWait(); limit != 0 {
		opts.Logger.Warn("the kernel would abort the mount for a long wait, so waits for flock and fcntl locks end with EAGAIN",
			"after", limit, "setting", "/proc/sys/fs/fuse/default_request_timeout, max_request_timeout")
	}
	options := mountOptions(opts)
	opened, connection, err := connect(place, options)
	if connection == nil {
		return nil, fmt.Errorf("cannot mount at %s: %w", dir, err)
	}
	var agreed *serve.Init
	if err == nil {
		agreed, err = serve.Opened(opened.KernelSettings(), options)
	}
	var m *Mounted
	if err == nil {
		m, err = newMounted(connection, agreed, ops, opts, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot serve the mount at %s: %w", dir, err), connection.Detach(true), connection.End())
	}
	m.begin(nil)
	return m, nil
}

// connect mounts at a place, and opens the connection to the kernel without serving it. It returns no
// connection if it mounted nothing.
func connect(place *mountpoint.Place, options *fuse.MountOptions) (*fuse.Server, *mountpoint.Connection, error) {
	if !mountpoint.Privileged() {
		return connectAsUser(place, options)
	}
	fd, err := mountpoint.OpenDevice()
	if err != nil {
		return nil, nil, err
	}
	fs, err := mountpoint.NewFuse(options.FsName, fd, options.MaxWrite, options.Options)
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	defer func() { _ = fs.Close() }()
	opened, err := fuse.NewServer(fuse.NewDefaultRawFileSystem(), fmt.Sprintf("/dev/fd/%d", fd), options)
	if err != nil {
		return nil, nil, err
	}
	device, err := mountpoint.TakeDevice(fd)
	if err != nil {
		return nil, nil, err
	}
	connection, err := place.Attach(fs)
	if connection == nil {
		return nil, nil, errors.Join(err, device.Close())
	}
	connection.Device = device
	return opened, connection, err
}

// connectAsUser is connect with fusermount3.
func connectAsUser(place *mountpoint.Place, options *fuse.MountOptions) (*fuse.Server, *mountpoint.Connection, error) {
	before, err := mountpoint.Devices()
	if err != nil {
		return nil, nil, err
	}
	opened, err := fuse.NewServer(fuse.NewDefaultRawFileSystem(), place.Path, options)
	if err != nil {
		return nil, nil, err
	}
	connection, err := mountpoint.Open(place.Path)
	device, errDevice := mountpoint.NewDevice(before)
	connection.Device = device
	return opened, connection, errors.Join(err, errDevice)
}

// newMounted returns a mount to be served. crashes are the times of earlier crashes of its processes, on
// CLOCK_BOOTTIME.
func newMounted(
	connection *mountpoint.Connection, agreed *serve.Init, ops Operator, opts Options, crashes []int64,
) (*Mounted, error) {
	if opts.Budgets == nil {
		opts.Budgets = NewBudgets(Limits{})
	}
	fs := newDispatcher(newFileSystem(ops, opts), inotify.NewKnown(), opts.Budgets.ofControl())
	server, err := serve.New(
		fs, connection.Device, agreed, mountOptions(opts), fs.asks, fs.mayWait, fs.waits.end, onlyOnce, opts.Budgets.ofServer(), opts.Logger)
	m := &Mounted{
		dir: connection.Dir, logger: opts.Logger, fs: fs, ops: ops, init: agreed, server: server, connection: connection,
		served: make(chan struct{}), left: make(chan struct{}),
	}
	offer, errOffer := m.Offer()
	if err = errors.Join(err, errOffer); err == nil {
		if fs.estate, err = crashstate.New(offer, crashes); err == nil {
			fs.observations.KeepIn(fs.estate)
		}
	}
	return m, err
}

// Estate returns the memory from which another process continues after a crash of this one (see [TakeOver]).
func (m *Mounted) Estate() *os.File { return m.fs.estate.File() }

// asks is called with each request. It skips GetAttr, which may be a part of an open(2) with a creation; its
// handler decides. It skips GetXAttr, which changes nothing: with rules of audit(7), the kernel reads the
// capabilities of a new file.
func (fs *fileSystem) asks(header *fuse.InHeader) {
	if header.Opcode != opGetAttr && header.Opcode != opGetXAttr {
		fs.goesOn(header.Pid)
	}
}

// begin serves in the background, and handles the given requests first.
func (m *Mounted) begin(given [][]byte) {
	m.following = m.follow()
	following := m.following
	m.fs.waits.resume()
	m.serving.Go(func() {
		gone, err := m.server.Serve(given)
		if err != nil {
			m.logger.Error("the mount cannot be served", "error", err)
		}
		if gone || err != nil {
			following.stop()
			m.fs.OnUnmount()
			close(m.served)
		}
	})
}

// Connection returns the connection with which another process can end the mount after a crash.
func (m *Mounted) Connection() *mountpoint.Connection { return m.connection }

// IsServed reports whether the kernel still uses the mount.
func (m *Mounted) IsServed() bool { return !m.over(0) }

func mountOptions(opts Options) *fuse.MountOptions {
	level := slog.LevelWarn
	if opts.Debug {
		level = slog.LevelDebug
	}
	name := opts.FsName
	if name == "" {
		name = fsName
	}
	return &fuse.MountOptions{
		Name:               mountpoint.FSType,
		FsName:             name,
		Options:            append([]string{"default_permissions"}, opts.MountOptions...),
		MaxBackground:      maxBackground,
		MaxWrite:           fuseattr.MaxWrite,
		DisableReadDirPlus: true,
		EnableLocks:        true,
		Debug:              opts.Debug,
		Logger:             slog.NewLogLogger(opts.Logger.Handler(), level),
		// With it, O_TRUNC is part of the open; without, a separate truncation follows.
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC,
		// Unused; it would count as one of the two permitted layers of stacked file systems.
		DisabledCapabilities: fuse.CAP_PASSTHROUGH,
	}
}

// unmountGrace limits the wait of Unmount for requests under way.
const unmountGrace = 2 * time.Second

// Unmount removes the mount from its directory. If programs still use it, also through another mount
// namespace, their open files work until End. A second call has no effect.
func (m *Mounted) Unmount() error {
	m.unmount.Lock()
	defer m.unmount.Unlock()
	if m.isOver() {
		return nil
	}
	err := m.connection.Detach(false)
	if err != nil {
		err = m.connection.Detach(true)
	}
	if m.over(unmountGrace) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot unmount %s: %w", m.dir, err)
	}
	m.logger.Warn("unmounted while in use; open files work until this process ends", "dir", m.dir)
	close(m.left)
	return nil
}

// InUse reports whether programs may still rely on open files: the file system exists, mounted or detached. A
// false result is final.
func (m *Mounted) InUse() bool {
	if !m.over(0) {
		return true
	}
	// The kernel ends the connection after the last user, but also after umount -f. It does not report all
	// files closed just before.
	return !m.fs.files.AreNone() && !m.connection.IsGone(unmountGrace)
}

// End ends the mount for its remaining users, as the end of this process would. It makes sure of a clean exit
// of this process (see [mountpoint.Connection]). Before, it delivers answers which may be under way (see
// [orphanreply.Finish]). The caller must have stopped all creations.
func (m *Mounted) End(answers [][]byte) error {
	if m.over(0) {
		return nil
	}
	orphanreply.Finish(m.connection.Device, answers)
	if err := m.connection.End(); err != nil {
		return err
	}
	if !m.over(unmountGrace) {
		return fmt.Errorf("the mount at %s does not end", m.dir)
	}
	return nil
}

func (m *Mounted) isOver() bool {
	select {
	case <-m.served:
		return true
	case <-m.left:
		return true
	default:
		return false
	}
}

// over waits for the end of the connection, at most for limit, and reports whether it came.
func (m *Mounted) over(limit time.Duration) bool {
	select {
	case <-m.served:
		return true
	default:
	}
	select {
	case <-m.served:
		return true
	case <-time.After(limit):
		return false
	}
}

// Wait waits until the directory is unmounted, by Unmount or from outside.
func (m *Mounted) Wait() {
	select {
	case <-m.served:
	case <-m.left:
	}
}
