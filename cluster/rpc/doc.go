// Package rpc is how nodes, mounts and commands call each other: one transport for all calls, with as few
// steps as there can be. A call is one write and one read on each side, and there is no goroutine between
// the reader of a connection and who waits for the answer: programs wait for most calls with every system
// call that they do. Between two processes of one machine a call takes 130 us with gRPC, 70 us with ttrpc
// and 20 to 60 us so, most of which is waking each other up.
//
// [Node] is what can be asked. A node answers it itself to who is in its process, and with a [Server] to
// others; [Peers] has a [Client] for each of those. A [Router] finds the one that leads.
//
// # One port
//
// All that hosts say to each other comes to one TCP address, a [Port]. With [Security] connections are
// mutual TLS, and their ALPN protocol says what they are for: raft's messages, calls ([NewServer]), or to
// be let in ([NewJoinServer]), which needs no certificate. Without, they begin with [RaftPreface] or
// [Preface], and whoever reaches the port is trusted. On a host itself calls come to unix sockets
// ([NewSocketServer]), where the kernel tells who has connected. [CallerOf] tells a node who makes a
// call. Where the certificates come from and what somebody may do is not known here.
//
// # Frames
//
// A connection begins with [Preface] from the side that calls. From then on both sides send frames:
//
//	length   4 bytes, big endian: of what follows
//	number   8 bytes, of the call, which its answer repeats
//	kind     1 byte: the method; in an answer 0, or a [Refusal]; with number 0, a Refusal of all that the connection may ask
//	wait     4 bytes: for how many milliseconds the caller waits for the answer, 0: it does not say; in an answer 0
//	message  protobuf; of a refusal nothing, or of a [RefusedError] its result
//
// If the kind of a request has its highest bit set (and is no ping, 255), the message is a
// clusterpb.Detour: the request of a caller that cannot reach the leader, on its way to a server that
// forwards it ([Unreachable]), or from that to the leader ([Forwarder]). A message cannot be both, so no
// request is forwarded twice.
//
// Answers come in any order. What takes news to answer is a call that waits.
//
// # What is bounded
//
// A call ends at both ends when the caller's time is up, at the server also when its connection is lost.
// That a caller gives up sooner is not told.
//
// A frame is at most [MaxRequest] or [MaxAnswer] long, takes memory as it comes and not as it is
// announced, and has to come to its end soon once it has begun. The requests that are being done and the
// answers that are on their way are counted, for each connection, each host and in all (limits): while
// they are too many, nothing more is read, and answers wait. A host is a certificate's, a user of a
// socket, or an address. Requests that are not small are counted by themselves until they have come.
// Forwarded requests have connections and limits of their own. There is room left for keepalives, which
// have a connection of their own, and probes. Who does not take an answer is hung up on. Whoever comes
// when there are too many connections is told so, and a Router asks again later; all other refusals end
// what it was asked.
//
// Connections of which it is not known yet what they are for are few, in all and for each address; where
// there are too many, those go that have taken the longest.
//
// A connection without calls is closed by the side that calls, later by the other one. While calls wait,
// the caller asks now and then whether the other side is there: a host or process that has stopped is
// noticed in seconds.
package rpc
