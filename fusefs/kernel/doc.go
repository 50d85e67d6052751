// Package kernel has what answers to the kernel are made of, whatever they are about: error numbers, attributes and their times, the
// numbers of what is open, who it is that asks, and what he may.
package kernel
