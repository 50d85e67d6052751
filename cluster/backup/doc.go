// Package backup is a state of a cluster as a file, from which another cluster can begin.
//
// # Format
//
//	magic     the line "lockfs-backup"
//	header    a line of JSON ([Header])
//	snapshot  so many bytes as the header says: what raft keeps as a snapshot, with a version and a checksum of its own
//	checksum  SHA-256 of all before it
//
// So `head -n 2` shows what a backup is. A file is one whole or none: [Create] gives it its name when it is complete and on disk.
package backup
