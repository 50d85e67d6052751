//go:build !unix

package lockfile

// ProvablyDead is always false: this system has no ESRCH.
func ProvablyDead(int) bool { return false }
