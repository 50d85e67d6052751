//go:build !race

package advisory

const many = 100_000
