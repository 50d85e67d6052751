// Package page is what operators look at in a browser, and the same as JSON: locks, one lock with its history, events, hosts and
// members. A server and the daemon of a mount serve it.
//
// # Who sees what
//
// Whoever asks is a user of the host: who has connected to the unix socket ([Server.SocketHandler]), or who has logged in over TCP
// ([Server.Handler]) with an address that works once, which that socket gives him. The daemon asks the cluster in his name, by the
// same way as commands on its socket do, so the page shows him what `lockfs locks` and .lockfs do, and lets him do what they do.
// This package judges nobody's rights.
//
// # How it is live
//
// A page is made of pieces: blocks, and rows of lists. A stream ([stream]) makes the pieces of its page anew a few times a second,
// and sends those that are not what they were; a script puts them in the place of the old ones. Without a script the same pieces
// stand in the page as it was when it was asked for. Locks are listed again only when the state has had another command since, and once
// for all streams of one user, so a stream on a quiet cluster costs a small query each time.
//
// # What a browser is told
//
// Nothing comes from another host, nothing in the page is a script or a style, and no other page may frame it (header). Changes
// need a form of this server: it has a code that other sites cannot know, and names the token of the lock that was seen.
package page
