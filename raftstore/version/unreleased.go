//go:build !next

package version

// unreleased is how many versions after Released this program knows.
const unreleased uint32 = 0
