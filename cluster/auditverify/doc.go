// Package auditverify checks audit logs from the servers of a cluster. It checks each log, compares the logs,
// and reports impossible histories.
//
// # Logs
//
// A log is a file audit.jsonl with its rotated files, or the output of `lockfs events --json` for root.
// Package auditverify checks each line by itself: the hash matches the contents, and the line is exactly as
// lockfs writes it. It also checks each line against the previous one (package eventchain).
//
// A finding is a [Problem]: a changed, removed, moved or repeated line, an invalid line, or one from another
// cluster. A log may begin anywhere, as old files are removed. It may end anywhere, as the next events may be
// unwritten yet. The answer reports both, since the log alone cannot show whether an end was cut off. If
// another server's log continues, the answer reports how many events are missing.
//
// Several logs are compared by their hashes, event by event. The other logs fill the gaps of one. Package
// lockhistory checks the combined events.
package auditverify
