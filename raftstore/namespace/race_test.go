//go:build race

package namespace

const many = 10_000 // the race detector makes all slower
