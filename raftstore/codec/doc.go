// Package codec encodes commands for the log with a checksum, and finds messages a program must not
// interpret. They are damaged ([ErrCorrupt]) or have, at any depth, a part unknown to this program
// ([ErrNewer]). Ignoring such a part would change the meaning of the message.
package codec
