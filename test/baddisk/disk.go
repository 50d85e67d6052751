// Package baddisk is a disk that can be slow, fail or hang: a FUSE file system over a directory. A file
// controls its faults.
//
// A test starts its own binary on a host with [Args]; this process mounts the disk and runs until it is
// killed. TestMain must call [Main]. The kernel caches nothing: each write(2) and fsync(2) of a program
// reaches the process, which delays or fails it. To hang the disk, stop the process.
package baddisk

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// word, as the first argument, makes the test binary a disk.
const word = "bad-disk"

// Ready is the output after the mount.
const Ready = "the disk is there"

// Contents of the control file. A duration such as "50ms" delays each write. The file may be missing.
const (
	Good = ""
	Bad  = "EIO"
)

// Args returns the arguments for the test binary: it mounts directory at another path and reads its faults
// from file.
func Args(directory, at, file string) []string { return []string{word, directory, at, file} }

// Main is for the begin of TestMain. In a process started as a disk it does not return.
func Main() {
	if len(os.Args) != 5 || os.Args[1] != word {
		return
	}
	if err := serve(os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(directory, at, file string) error {
	good := &fs.LoopbackNode{RootData: &fs.LoopbackRoot{Path: directory}}
	root := &node{good, file}
	good.RootData.RootNode = root
	server, err := fs.Mount(at, root, &fs.Options{
		MountOptions: fuse.MountOptions{AllowOther: true, DirectMountStrict: true, FsName: "bad-disk", Name: "baddisk"},
	})
	if err != nil {
		return fmt.Errorf("mount a disk at %s: %w", at, err)
	}
	fmt.Println(Ready)
	server.Wait()
	return nil
}

// node is a file or directory.
type node struct {
	*fs.LoopbackNode
	obeys string
}

var (
	_ fs.NodeCreater     = (*node)(nil)
	_ fs.NodeOpener      = (*node)(nil)
	_ fs.NodeWrapChilder = (*node)(nil)
)

// WrapChild implements fs.NodeWrapChilder.
func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	if good, is := child.(*fs.LoopbackNode); is {
		return &node{good, n.obeys}
	}
	return child
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if errno := obey(n.obeys); errno != 0 {
		return nil, nil, 0, errno
	}
	child, opened, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return child, n.bad(opened), fuseFlags, errno
}

// Open implements fs.NodeOpener.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	opened, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	return n.bad(opened), fuseFlags, errno
}

func (n *node) bad(opened fs.FileHandle) fs.FileHandle {
	if good, is := opened.(*fs.LoopbackFile); is {
		return &handle{good, n.obeys}
	}
	return opened
}

// handle is an open file.
type handle struct {
	*fs.LoopbackFile
	obeys string
}

var (
	_ fs.FileWriter          = (*handle)(nil)
	_ fs.FileFsyncer         = (*handle)(nil)
	_ fs.FilePassthroughFder = (*handle)(nil)
)

// Write implements fs.FileWriter.
func (h *handle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if errno := obey(h.obeys); errno != 0 {
		return 0, errno
	}
	return h.LoopbackFile.Write(ctx, data, off)
}

// Fsync implements fs.FileFsyncer.
func (h *handle) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if errno := obey(h.obeys); errno != 0 {
		return errno
	}
	return h.LoopbackFile.Fsync(ctx, flags)
}

// PassthroughFd keeps the kernel from writing past this process.
func (*handle) PassthroughFd() (int, bool) { return 0, false }

// obey waits or fails according to the control file.
func obey(file string) syscall.Errno {
	text, err := os.ReadFile(file)
	said := strings.TrimSpace(string(text))
	if err != nil || said == Good {
		return 0
	}
	if said == Bad {
		return syscall.EIO
	}
	if delay, err := time.ParseDuration(said); err == nil {
		time.Sleep(delay)
	}
	return 0
}
