// Package lockjson encodes locks and events as lines of JSON, for commands and for the files of .lockfs.
package lockjson
