//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package tower

import (
	"io/fs"
	"syscall"
)

func owner(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
