// Package serve reads the requests of one FUSE connection, has them handled, and writes the answers. go-fuse parses requests and
// renders answers; its own loop over /dev/fuse is not used, because it can neither begin on a connection that is there already nor
// let go of one that goes on.
//
// A [Server] can be stopped while programs use the mount. It answers everything that it has read, but for requests that may
// wait as long as they like, for a lock or an event: those it gives back as the kernel sent them, and whoever serves the connection next has
// them handled as if it had just read them. A request keeps no large buffer while it is handled, unless it has much data itself. What the kernel has not been read stays in its queue. So no request is lost or answered
// twice, and the programs notice nothing but a pause.
//
// If a process was killed, the kernel is told to ask again what it had asked that process (Linux 6.9), and says so with each
// request. What may be done twice is handled like any other. What may not is refused, for nobody knows whether it was done.
package serve
