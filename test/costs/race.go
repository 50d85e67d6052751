//go:build race

package costs

const many = 10_000 // the race detector makes all slower
