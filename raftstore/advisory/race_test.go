//go:build race

package advisory

const many = 10_000 // the race detector makes all slower
