package conformance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

var transferCases = []Case{
	{Name: "mmap: private mappings", Do: mapPrivate},
	{Name: "mmap: shared mappings", Do: mapShared},
	{Name: "copy_file_range: all, and from place to place", Do: copyRanges},
	{Name: "copy_file_range: errors", Do: copyErrors},
	{Name: "sendfile", Do: sendfile},
	{Name: "splice: to and from a pipe", Do: splices},
	{Name: "execve: scripts, if the mode allows", Do: executes, Alone: true},
	{Name: "execve: a program that runs is not written to, nor one that is written to run", Do: textBusy, Alone: true},
}

func mapPrivate(t *T) {
	t.file("f", "hello")
	for _, flags := range []int{unix.O_RDONLY, unix.O_RDWR} {
		fd := t.open("f", flags)
		mapped, err := unix.Mmap(fd, 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		t.ok(err)
		t.equal("hello", string(mapped))
		mapped[0] = 'J'
		t.equal("hello", t.read("f"), "what is written to it stays in it")
		t.ok(unix.Munmap(mapped))
	}
	t.file("f", "world")
	mapped, err := unix.Mmap(t.open("f", unix.O_RDONLY), 0, 5, unix.PROT_READ, unix.MAP_PRIVATE)
	t.ok(err)
	t.equal("world", string(mapped), "a new mapping shows what is there now")
	t.ok(unix.Munmap(mapped))
	_, err = unix.Mmap(t.open("f", unix.O_WRONLY), 0, 5, unix.PROT_READ, unix.MAP_PRIVATE)
	t.fails(unix.EACCES, err)
	_, err = unix.Mmap(t.open(".", unix.O_RDONLY), 0, 5, unix.PROT_READ, unix.MAP_PRIVATE)
	t.fails(unix.ENODEV, err)
}

func mapShared(t *T) {
	t.file("f", "hello")
	for flags, protection := range map[int]int{unix.O_RDONLY: unix.PROT_READ, unix.O_RDWR: unix.PROT_READ | unix.PROT_WRITE} {
		mapped, err := unix.Mmap(t.open("f", flags), 0, 5, protection, unix.MAP_SHARED)
		if t.Differs(NoMapping) {
			t.fails(unix.ENODEV, err)
			continue
		}
		t.ok(err)
		t.equal("hello", string(mapped))
		t.ok(unix.Munmap(mapped))
	}
	_, err := unix.Mmap(t.open("f", unix.O_RDONLY), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	t.fails(unix.EACCES, err)
}

func copyRanges(t *T) {
	t.file("f", repeated("0123456789", 10_000))
	from, to := t.open("f", unix.O_RDONLY), t.open("g", unix.O_CREAT|unix.O_RDWR)
	for copied := 0; copied < 100_000; {
		n, err := unix.CopyFileRange(from, nil, to, nil, 100_000-copied, 0)
		t.ok(err)
		t.true(n > 0)
		copied += n
	}
	t.equal(t.read("f"), t.read("g"))
	n, err := unix.CopyFileRange(from, nil, to, nil, 10, 0)
	t.ok(err)
	t.equal(0, n, "at the end")
	source, target := int64(5), int64(0)
	n, err = unix.CopyFileRange(from, &source, to, &target, 5, 0)
	t.ok(err)
	t.equal(5, n)
	t.equal(int64(10), source)
	t.equal("5678956789", t.read("g")[:10])
}

func copyErrors(t *T) {
	t.file("f", "hello")
	from, to := t.open("f", unix.O_RDONLY), t.open("g", unix.O_CREAT|unix.O_RDWR)
	_, err := unix.CopyFileRange(from, nil, from, nil, 5, 0)
	t.fails(unix.EBADF, err)
	_, err = unix.CopyFileRange(from, nil, to, nil, 5, 1)
	t.fails(unix.EINVAL, err)
	_, err = unix.CopyFileRange(t.open(".", unix.O_RDONLY), nil, to, nil, 5, 0)
	t.fails(unix.EISDIR, err)
	_, err = unix.CopyFileRange(from, nil, t.open("g", unix.O_WRONLY|unix.O_APPEND), nil, 5, 0)
	t.fails(unix.EBADF, err)
	t.equal("", t.read("g"))
}

func sendfile(t *T) {
	t.file("f", "hello world")
	from, to := t.open("f", unix.O_RDONLY), t.open("g", unix.O_CREAT|unix.O_RDWR)
	offset := int64(6)
	n, err := unix.Sendfile(to, from, &offset, 100)
	t.ok(err)
	t.equal(5, n)
	t.equal(int64(11), offset)
	n, err = unix.Sendfile(to, from, nil, 5)
	t.ok(err)
	t.equal(5, n)
	t.equal("worldhello", t.read("g"))
	_, err = unix.Sendfile(from, to, nil, 5)
	t.fails(unix.EBADF, err)
}

func splices(t *T) {
	t.file("f", "hello world")
	pipe := make([]int, 2)
	t.ok(unix.Pipe2(pipe, unix.O_CLOEXEC))
	t.cleanup(func() { _, _ = unix.Close(pipe[0]), unix.Close(pipe[1]) })
	offset := int64(6)
	n, err := unix.Splice(t.open("f", unix.O_RDONLY), &offset, pipe[1], nil, 100, 0)
	t.ok(err)
	t.equal(int64(5), n)
	to := t.open("g", unix.O_CREAT|unix.O_RDWR)
	n, err = unix.Splice(pipe[0], nil, to, nil, 100, 0)
	t.ok(err)
	t.equal(int64(5), n)
	t.equal("world", t.read("g"))
	_, err = unix.Splice(to, nil, to, nil, 1, 0)
	t.fails(unix.EINVAL, err)
	n, err = unix.Tee(pipe[0], pipe[1], 1, 0)
	t.true(err != nil || n == 0)
}

func executes(t *T) {
	t.file("script", "#!/bin/sh\necho \"$1\" from a script\n")
	_, err := exec.Command(t.path("script")).Output()
	t.true(os.IsPermission(err), "without the mode")
	t.ok(unix.Chmod("script", 0o755))
	output, err := exec.Command(t.path("script"), "hello").Output()
	t.ok(err)
	t.equal("hello from a script\n", string(output))
}

func textBusy(t *T) {
	shell, err := exec.LookPath("dash") // a small shell that reads commands
	t.ok(err)
	code, err := os.ReadFile(shell)
	t.ok(err)
	install := func() {
		t.file("program", string(code))
		t.ok(unix.Chmod("program", 0o755))
	}
	install()
	running := exec.Command(t.path("program"))
	input, err := running.StdinPipe()
	t.ok(err)
	t.ok(running.Start())
	t.fails(unix.ETXTBSY, opening("program", unix.O_WRONLY))
	t.fails(unix.ETXTBSY, unix.Truncate("program", 0))
	t.ok(unix.Rename("program", "renamed"))
	t.ok(unix.Unlink("renamed"))
	_, err = input.Write([]byte("exit 7\n"))
	t.ok(err)
	t.equal("exit status 7", fmt.Sprint(running.Wait()), "it ran until then")

	install()
	t.open("program", unix.O_WRONLY)
	err = exec.Command(t.path("program")).Run()
	t.true(errors.Is(err, unix.ETXTBSY), err)
}
