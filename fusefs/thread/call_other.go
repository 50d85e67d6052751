//go:build !amd64

package thread

var older, foreignFcntl []int
