// Package serve reads the requests of one FUSE connection, has them handled, and writes the answers. go-fuse
// parses requests and encodes answers. Its own loop over /dev/fuse can neither begin on an existing
// connection nor leave one, so this package replaces it.
//
// A [Server] can be stopped while programs use the mount. It answers all requests it has read, except those
// without a time limit (locks and events). It gives these back as the kernel sent them, and the next server
// handles them like new ones. Unread requests stay in the kernel's queue. So each request gets one answer,
// and programs notice only a pause. While it is handled, a request keeps a large buffer only for its own
// data.
//
// After a crash of a process, the kernel sends its requests again, with a mark (Linux 6.9). The server
// handles requests which may be done twice. It refuses the others, as their outcome is unknown.
package serve
