//go:build !next

package version

// Newest is the last of the versions that this program knows.
const Newest = Released
