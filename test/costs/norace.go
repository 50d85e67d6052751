//go:build !race

package costs

const many = 100_000
