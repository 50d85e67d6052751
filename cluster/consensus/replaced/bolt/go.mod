module github.com/boltdb/bolt

go 1.26.0

require go.etcd.io/bbolt v1.5.0
