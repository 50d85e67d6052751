// Package codec renders commands for the log, with a checksum, and tells what a program must not take for what it is not:
// bytes that were damaged ([ErrCorrupt]), and messages that have a part which this program does not know ([ErrNewer]), at any
// depth. To leave such a part out would be to do something else than what was said.
package codec
