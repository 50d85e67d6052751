// Package filelock knows of the flock and fcntl locks of one file what its mount has to know beside the cluster: who may have locks,
// through which open file descriptions they were taken, which requests are under way, and what is being released.
package filelock
