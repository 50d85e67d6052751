// Package fuseattr has the common parts of answers to the kernel: error numbers, attributes, times, handles,
// and callers with their permissions.
package fuseattr
