// Package forrst is the Forrst atomic lock extension: its data in requests and responses, the mapping from
// keys to file names, and the lock file of a lockfs server for a key.
//
//	request, err := forrst.ParseRequest(body)
//	options, err := request.LockOptions() // nil: no lock is asked for
//	key, err := options.FullKey(request.Call.Function)
//	name, err := forrst.FileName(key)
//
// [Runner] is the server's side of the extension, in front of any [http.Handler] with the functions and any
// [Store] of locks. [Upstream] is a handler for the functions of another server.
//
//	http.Handle("POST /forrst", &forrst.Runner{Store: store, Next: functions})
//
// The types render with the names and the order of the specification's examples. Input must match exactly.
// encoding/json ignores case and accepts members that appear twice; a lock must not depend on that.
//
// # Durations
//
// A duration is a whole number and one of the units millisecond, second, minute, hour, day and week. The
// examples show second and hour. Month and year are refused, because they have no fixed length.
//
// # Replays
//
// The document does not say how a server answers a request that is sent again after a lost answer. If Replay
// is not 0, a [Runner] treats the same id and the same body as one request, on any server, and does it once.
// The second attempt gets the first answer, even an error, with [ReplayHeader]:
//
//   - while the first attempt runs: the second one waits for it;
//   - for the time Replay afterwards, if the lock ended with the call: the request was done;
//   - as long as this very lock is held, if the call left it behind.
//
// Otherwise no effect of the first attempt is left, and the same request is a new call. So is any request
// that did not get its lock. A release or force-release repeated within Replay succeeds again.
//
// Two clients that send the same bytes are indistinguishable. Their addresses do not help: proxies share and
// change them, and two runs of one program have the same. So a Runner never gives a usable owner token, made
// by the server, to another attempt. A request with auto_release false is done once only if it names its
// owner, because such a client knows the token already. Without an owner, it finds the lock held, like any
// other request, and may get it later. The function is not called again: a client with an exact copy of
// another client's request gets its answer.
package forrst
