// Package page serves the web page for operators, also as JSON: locks, one lock with its history, events,
// hosts and members. A server and the daemon of a mount serve it.
//
// # Permissions
//
// Each caller is a user of the host. It connects to the unix socket ([Server.SocketHandler]), or logs in over
// TCP ([Server.Handler]) with a one-time address from this socket. The daemon queries the cluster on behalf
// of the user, in the same way as for commands. So the page shows and permits the same as `lockfs locks` and
// .lockfs. This package checks no permissions itself.
//
// # Live updates
//
// A page consists of pieces: blocks, and rows of lists. A stream ([stream]) renders the pieces a few times a
// second and sends the changed ones; a script replaces them. Without scripts the page shows the pieces as of
// the request. The page lists locks again only after a command has changed the state, once for all streams of
// a user. So a stream on a quiet cluster costs a small query each time.
//
// # Browser security
//
// The page loads nothing from other hosts, has no inline scripts or styles, and refuses frames (header).
// Changes need a form of this server. It contains a code unknown to other sites, and the token of the
// displayed lock.
package page
