// Command bare mounts a directory a second time through FUSE: the cost of a file system in a program without
// storage, network and disk writes. Like lockfs, it lets the kernel cache nothing and check permissions.
//
//	bare DIR MOUNTPOINT
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: bare DIR MOUNTPOINT")
	}
	root, err := fs.NewLoopbackRoot(os.Args[1])
	if err != nil {
		return err
	}
	var none time.Duration
	server, err := fs.Mount(os.Args[2], root, &fs.Options{
		EntryTimeout: &none, AttrTimeout: &none, NegativeTimeout: &none,
		MountOptions: fuse.MountOptions{
			Options: []string{"default_permissions"}, AllowOther: true, DirectMountStrict: true, DisableReadDirPlus: true,
		},
	})
	if err != nil {
		return err
	}
	fmt.Println("bare: ready")
	server.Wait()
	return nil
}
