// Package mountpoints handles the configured mount points of this host. Programs must fail on a missing mount
// instead of locking in the bare directory. So the package protects these directories, records the
// protection, and lets commands check the mount before they take a lock.
package mountpoints
