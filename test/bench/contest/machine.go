package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockfs/test/stats"
)

// kernel returns the name and version from uname(1).
func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}

// describe returns the file system of a directory, as reported by the kernel.
func describe(dir string) stats.Directory {
	d := stats.Directory{Path: dir}
	var of unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &of); err != nil {
		return d
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return d
	}
	for line := range strings.Lines(string(mounts)) {
		// proc_pid_mountinfo(5): the id is first; type and source follow a dash.
		id, _, _ := strings.Cut(line, " ")
		_, tail, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(tail); id == strconv.FormatUint(of.Mnt_id, 10) && len(fields) > 1 {
			d.Type, d.Source = fields[0], fields[1]
		}
	}
	return d
}
