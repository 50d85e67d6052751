// Package bolt stands in for github.com/boltdb/bolt, which is no longer maintained. raft-boltdb imports it for the migration of files that
// lockfs never had. The types are those of bbolt, its maintained successor.
package bolt

import "go.etcd.io/bbolt"

// The names that raft-boltdb uses.
type (
	Options = bbolt.Options
	DB      = bbolt.DB
)

// Open opens a file as bbolt does.
var Open = bbolt.Open
