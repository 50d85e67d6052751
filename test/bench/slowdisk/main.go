// Command slowdisk shows a directory in memory at another path, with a slow fsync like a disk. A loop device
// on a file there is a separate disk with this flush time. Writes do not pass through the program
// (FUSE_PASSTHROUGH), so they cost nothing extra.
//
//	slowdisk DIR MOUNTPOINT DELAY
package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "slowdisk:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 4 {
		return fmt.Errorf("usage: slowdisk DIR MOUNTPOINT DELAY")
	}
	delay, err := time.ParseDuration(os.Args[3])
	if err != nil {
		return err
	}
	root := &fs.LoopbackNode{RootData: &fs.LoopbackRoot{Path: os.Args[1]}}
	slow := &node{root, delay}
	root.RootData.RootNode = slow
	server, err := fs.Mount(os.Args[2], slow, &fs.Options{
		MountOptions: fuse.MountOptions{AllowOther: true, DirectMountStrict: true, Name: "slowdisk"},
	})
	if err != nil {
		return err
	}
	fmt.Println("slowdisk: ready")
	server.Wait()
	return nil
}

// node is the directory, or a file in it.
type node struct {
	*fs.LoopbackNode
	delay time.Duration
}

// WrapChild implements fs.NodeWrapChilder.
func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{child.(*fs.LoopbackNode), n.delay}
}

// Open implements fs.NodeOpener.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	opened, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &file{opened.(*fs.LoopbackFile), n.delay}, fuseFlags, 0
}

// file is an open file. The kernel writes to the file below.
type file struct {
	*fs.LoopbackFile
	delay time.Duration
}

// Fsync implements fs.FileFsyncer. The file is in memory, so it only waits.
func (f *file) Fsync(context.Context, uint32) syscall.Errno {
	left := unix.NsecToTimespec(f.delay.Nanoseconds())
	for unix.Nanosleep(&left, &left) == unix.EINTR { //nolint:errorlint // a plain errno
	}
	return 0
}
