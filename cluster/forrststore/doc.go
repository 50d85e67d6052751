// Package forrststore stores the locks of the Forrst atomic lock extension in a cluster: it is the
// [forrst.Store] behind the endpoints of all servers.
//
// # Files
//
// The lock of a key is the file /.forrst/NAME (see [forrst.FileName]), created exclusively and with its
// content in one command. It ends with a removal by its owner's token, by force, or by expiry in the state
// machine. None of these needs the server which created it. Its times are cluster time.
//
// Two other names, impossible for keys, are internal and not listed as locks. Waiting requests hold record
// locks on the file .queue. The directory .replies has a file for each answered request: the token of its
// lock, and the answer. It expires with the answer's validity or, if the call kept its lock, with the lock,
// but not before a minute.
//
// # Waiting
//
// A waiting request first takes an exclusive record lock on one byte of .queue, derived from its key. The
// cluster grants these locks in the order of the requests on all servers. The holder is next: it creates the
// file after the previous lock's end, and then releases the byte. Two keys may share a byte, and then wait
// slightly longer. A request without a wait has no place in line, so it may get a free lock before a waiting
// one. Exclusion does not depend on the order: only one request can create the file.
//
// A crashed server leaves the line when its session expires, one TTL later. Until then the requests behind it
// wait, since the crash is not known.
//
// # Exactly once
//
// A request records its answer before it drops its lock. So another attempt of the request looks for the
// answer when it gets the lock, or finds none. If another attempt has the lock, it does not stand in line: it
// waits for the answer or the end of the lock. The answer contains the token of its lock. So it never counts
// for a later lock of the same request.
//
// A release is an event with the name of its request. So a repeated release soon after the first succeeds
// again. A release after another request's release gets the error for a released lock. The cluster keeps the
// last ten thousand events for this.
package forrststore
