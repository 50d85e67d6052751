// Package filelock has a mount's own state of the flock and fcntl locks of one file: possible owners, their
// open file descriptions, requests under way, and releases in progress.
package filelock
