// Package mountpoints knows the mount points that this host's configuration names. Where lockfs should be mounted and is not, programs
// must fail rather than lock in the bare directory. So the package protects these directories, records that, and has the commands that
// take locks check that lockfs is mounted.
package mountpoints
