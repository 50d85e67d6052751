// Package lockjson is how locks and events are printed as lines of JSON, by commands and in the files of .lockfs.
package lockjson
