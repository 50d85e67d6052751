// Package rpc is how nodes, mounts and commands call each other: one transport for all calls, with as few steps as there can be.
// A call is one write and one read on each side, and there is no goroutine between the reader of a connection and who waits
// for the answer: programs wait for most calls with every system call that they do. Between two processes of one machine a
// call takes 130 us with gRPC, 70 us with ttrpc and 20 to 60 us so, most of which is waking each other up.
//
// [Node] is what can be asked. A node answers it itself to who is in its process, and with a [Server] to others; [Peers] has
// a [Remote] for each of those. A [Router] finds the one that leads.
//
// # Frames
//
// A connection begins with [Preface] from the side that calls. From then on both sides send frames:
//
//	length   4 bytes, big endian: of what follows
//	number   8 bytes, of the call, which its answer repeats
//	kind     1 byte: the method; in an answer 0, or a [Refusal]
//	wait     4 bytes: for how many milliseconds the caller waits for the answer, 0: it does not say; in an answer 0
//	message  protobuf; of a refusal nothing
//
// Answers come in any order. What takes news to answer is a call that waits.
//
// # What is bounded
//
// A call ends at both ends when the caller's time is up, at the server also when its connection is lost. That a caller gives
// up sooner is not told.
//
// A frame is at most [MaxRequest] or [MaxAnswer] long, takes memory as it comes and not as it is announced, and has to come to its
// end soon once it has begun. The requests that are being read and done and the answers that are on their way are counted, for
// each connection, each address and in all (limits): while they are too many, nothing more is read, and answers wait. There is
// room left for keepalives, which have a connection of their own, and probes. Who does not take an answer is hung up on. So is
// whoever comes when there are too many connections.
//
// A connection without calls is closed by the side that calls, later by the other one. While calls wait, the caller asks
// now and then whether the other side is there: a host or process that has stopped is noticed in seconds.
//
// There is neither encryption nor authentication: who reaches the port is trusted as the other hosts are.
package rpc
