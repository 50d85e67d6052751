// Package backup stores the state of a cluster in a file, for the start of another cluster.
//
// # Format
//
//	magic     the line "lockfs-backup"
//	header    a line of JSON ([Header])
//	snapshot  bytes, with the length in the header: a raft snapshot, with its own version and checksum
//	checksum  SHA-256 of everything before
//
// So `head -n 2` describes a backup. A file is complete or does not exist: [Create] renames it when it is
// complete and on disk.
package backup
