//go:build !race

package namespace

const many = 100_000
