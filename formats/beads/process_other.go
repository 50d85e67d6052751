//go:build !unix

package beads

// isProvablyDead proves nothing where there is no ESRCH.
func isProvablyDead(int) bool { return false }
