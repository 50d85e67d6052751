// Package rpc is the transport for all calls between nodes, mounts and commands, optimized for latency. A
// call is one write and one read on each side. No goroutine runs between the reader of a connection and the
// waiting caller: programs wait for most calls in every system call. Between two processes of one machine a
// call takes 130 us with gRPC, 70 us with ttrpc, and 20 to 60 us with this package. Most of this time is for
// wakeups.
//
// [Node] has the methods. A node implements it for callers in its process, and with a [Server] for others;
// [Peers] has a [Client] for each of those. A [Router] finds the leader.
//
// # One port
//
// All traffic between hosts goes to one TCP address, a [Port]. With [Security] connections are mutual TLS,
// and the ALPN protocol selects the purpose: raft, calls ([NewServer]), or enrollment without a certificate
// ([NewJoinServer]). Without Security they begin with [RaftPreface] or [Preface], and the port trusts every
// peer. Calls within a host use unix sockets ([NewSocketServer]), and the kernel identifies the caller.
// [CallerOf] returns the caller of a call. Other packages issue certificates and check permissions.
//
// # Frames
//
// The calling side begins a connection with [Preface]. Then both sides send frames:
//
//	length   4 bytes, big endian: of the rest
//	number   8 bytes, of the call; the reply repeats it
//	kind     1 byte: the method; in a reply 0, or a [Refusal] (number 0: of all calls of a connection)
//	wait     4 bytes: how many milliseconds the caller waits for the reply, 0: unknown; in a reply 0
//	message  protobuf; in a refusal empty, or the result of a [RefusedError]
//
// If the kind of a request has its highest bit set (and is not ping, 255), the message is a clusterpb.Detour.
// It is the request of a caller without a way to the leader, sent to a server which forwards it
// ([Unreachable]). Or it is on the way from this server to the leader ([Forwarder]). A message cannot be
// both, so a request is forwarded at most once.
//
// Replies come in any order. A request for news is a call which waits.
//
// # Limits
//
// A call ends on both sides when the caller's time is up, and on the server also when its connection is lost.
// The server does not learn of an earlier cancellation.
//
// A frame has at most [MaxRequest] or [MaxAnswer] bytes, takes memory as it arrives, and has to be complete
// soon after its begin. The server counts the requests in progress and unsent replies: for each connection,
// for each host, and in all (limits). Beyond the limits it reads nothing more, and replies wait. A host is
// the host of a certificate, a user of a socket, or an address. Incomplete large requests have a separate
// limit.
//
// Forwarded requests have separate connections and limits. Keepalives with their own connection, and probes,
// always have room. The server closes a connection if its peer does not read a reply. It refuses connections
// beyond the limit, and a Router tries again later; all other refusals are final.
//
// Connections before the end of their handshake are limited, in all and for each address. Beyond the limit
// the server closes the oldest.
//
// The calling side closes a connection without calls, and later the other side does. While calls wait, the
// caller sends pings: it detects a stopped host or process within seconds.
package rpc
