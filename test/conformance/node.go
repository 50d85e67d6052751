package conformance

import (
	"time"

	"golang.org/x/sys/unix"
)

var nodeCases = []Case{
	{Name: "mknod: regular files, fifos and sockets", Do: nodes},
	{Name: "mknod: devices", Do: devices},
	{Name: "mknod: errors", Do: nodeErrors},
	{Name: "fifo: connects processes of one host", Do: fifos},
	{Name: "fifo: errors of open", Do: fifoErrors},
	{Name: "socket: is bound to a name and connected to by it", Do: sockets},
	{Name: "poll: files are always ready", Do: polls},
	{Name: "ioctl: attributes of files", Do: ioctls},
}

func nodes(t *T) {
	unix.Umask(0o027)
	for name, kind := range map[string]uint32{"f": unix.S_IFREG, "fifo": unix.S_IFIFO, "socket": unix.S_IFSOCK} {
		t.ok(unix.Mknod(name, kind|0o666, 0))
		st := t.lstat(name)
		t.equal(kind|0o640, st.Mode)
		t.equal(1, int(st.Nlink))
		t.equal(int64(0), st.Size)
	}
	t.ok(unix.Mknod("plain", 0o600, 0), "no kind is a regular file")
	t.equal(uint32(unix.S_IFREG|0o600), t.lstat("plain").Mode)
	t.equal("", t.read("plain"))
	t.ok(unix.Rename("fifo", "fifo2"))
	t.ok(unix.Unlink("fifo2"))
	t.ok(unix.Chmod("socket", 0o600))
	t.as(alice, func() { t.ok(unix.Mkfifo("alices", 0o600)) })
	t.equal(uint32(alice.id), t.lstat("alices").Uid)
}

func devices(t *T) {
	for name, kind := range map[string]uint32{"char": unix.S_IFCHR, "block": unix.S_IFBLK} {
		t.as(alice, func() { t.fails(unix.EPERM, unix.Mknod(name, kind|0o666, int(unix.Mkdev(1, 3)))) })
		err := unix.Mknod(name, kind|0o666, int(unix.Mkdev(1, 3)))
		if t.Differs(NoDevices) {
			t.fails(unix.EPERM, err)
			t.missing(name)
		} else {
			t.ok(err)
		}
	}
}

func nodeErrors(t *T) {
	t.files("f")
	t.mkdir("d")
	for path, want := range map[string]unix.Errno{
		"f": unix.EEXIST, "d": unix.EEXIST, "f/x": unix.ENOTDIR, "none/x": unix.ENOENT, "": unix.ENOENT,
		"new/": unix.ENOENT,
	} {
		t.fails(want, unix.Mkfifo(path, 0o644), path)
	}
	t.fails(unix.EPERM, unix.Mknod("x", unix.S_IFDIR|0o755, 0))
	t.fails(unix.EINVAL, unix.Mknod("x", unix.S_IFLNK|0o755, 0))
	t.ok(unix.Chmod("d", 0o755))
	t.as(alice, func() { t.fails(unix.EACCES, unix.Mkfifo("d/x", 0o644)) })
}

func fifos(t *T) {
	t.ok(unix.Mkfifo("fifo", 0o644))
	t.age("fifo")
	reader := t.open("fifo", unix.O_RDONLY|unix.O_NONBLOCK)
	writer := t.open("fifo", unix.O_WRONLY|unix.O_NONBLOCK)
	t.write(writer, "hello")
	buffer := make([]byte, 10)
	n, err := unix.Read(reader, buffer)
	t.ok(err)
	t.equal("hello", string(buffer[:n]))
	_, err = unix.Read(reader, buffer)
	t.fails(unix.EAGAIN, err)
	_, err = unix.Pread(reader, buffer, 0)
	t.fails(unix.ESPIPE, err)
	t.equal(uint32(unix.S_IFIFO|0o644), t.fstat(reader).Mode)
	t.equal(int64(0), t.lstat("fifo").Size)
	t.ok(unix.Unlink("fifo"))
	t.write(writer, "more")
	n, err = unix.Read(reader, buffer)
	t.ok(err)
	t.equal("more", string(buffer[:n]))
}

func fifoErrors(t *T) {
	t.ok(unix.Mkfifo("fifo", 0o600))
	t.fails(unix.ENXIO, opening("fifo", unix.O_WRONLY|unix.O_NONBLOCK))
	t.fails(unix.ENOTDIR, opening("fifo", unix.O_RDONLY|unix.O_DIRECTORY))
	t.as(alice, func() { t.fails(unix.EACCES, opening("fifo", unix.O_RDONLY|unix.O_NONBLOCK)) })
	t.ok(unix.Mknod("socket", unix.S_IFSOCK|0o600, 0))
	t.fails(unix.ENXIO, opening("socket", unix.O_RDONLY))
}

func (t *T) socket() int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	t.ok(err)
	t.cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func sockets(t *T) {
	address := &unix.SockaddrUnix{Name: "socket"}
	server, client := t.socket(), t.socket()
	t.ok(unix.Bind(server, address))
	t.equal(uint32(unix.S_IFSOCK), t.lstat("socket").Mode&unix.S_IFMT)
	t.fails(unix.EADDRINUSE, unix.Bind(t.socket(), address))
	t.fails(unix.ECONNREFUSED, unix.Connect(client, address))
	t.ok(unix.Listen(server, 1))
	t.ok(unix.Connect(client, address))
	t.ok(unix.Unlink("socket"))
	t.fails(unix.ENOENT, unix.Connect(t.socket(), address))
}

func polls(t *T) {
	t.files("f")
	fd := t.open("f", unix.O_RDWR)
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}
	n, err := unix.Poll(ready, 0)
	t.ok(err)
	t.equal(1, n)
	t.equal(int16(unix.POLLIN|unix.POLLOUT), ready[0].Revents)
	t.true(t.readable(fd, time.Second))
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	t.ok(err)
	t.cleanup(func() { _ = unix.Close(epoll) })
	err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN})
	if t.Differs(Pollable) {
		t.ok(err)
	} else {
		t.fails(unix.EPERM, err)
	}
}

func ioctls(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	waiting, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	t.ok(err)
	t.equal(5, waiting)
	_, err = unix.IoctlGetTermios(fd, unix.TCGETS)
	t.fails(unix.ENOTTY, err)
	_, err = unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if t.Differs(FewIoctls) {
		t.fails(unix.ENOTTY, err)
	} else {
		t.ok(err)
	}
}
