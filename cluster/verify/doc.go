// Package verify reads audit logs of the servers of a cluster, and says whether they are whole, say the same, and can have been.
//
// # Logs
//
// A log is a file audit.jsonl with those that were rotated before it, or what `lockfs events --json` printed for root. Each line is checked by
// itself (its hash is of what it says, and it is exactly what lockfs writes) and against the line before (package eventchain). What is found is
// a [Problem]: changed, removed, moved and repeated lines, lines that are none, and those of another cluster. A log may begin anywhere, as old
// files are removed, and end anywhere, as what follows may not be written yet; both is said, since what was cut off at an end cannot be told
// from that by the log alone. Where another server's log goes on, it is seen how much that is.
//
// Several logs are compared by their hashes, event by event. What one lacks is taken from the others, and the events of all are judged
// by package lockhistory.
package verify
