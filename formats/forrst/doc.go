// Package forrst is the Forrst atomic lock extension: what travels in requests and responses, how keys
// become the names of files, and the lock file that a lockfs server keeps for a key.
//
//	request, err := forrst.ParseRequest(body)
//	options, err := request.LockOptions() // nil: no lock is asked for
//	key, err := options.FullKey(request.Call.Function)
//	name, err := forrst.FileName(key)
//
// [Runner] is the server's side of the extension, in front of any [http.Handler] that has the functions and with
// any [Store] of locks. [Upstream] is a handler for functions that another server has.
//
//	http.Handle("POST /forrst", &forrst.Runner{Store: store, Next: functions})
//
// The types render with the names and the order of the specification's examples. What they are read
// from must match exactly: encoding/json's forgiveness for upper and lower case and for members that
// appear twice is not wanted where a lock depends on it.
//
// # Durations
//
// A duration is a whole number and one of the units millisecond, second, minute, hour, day and week.
// The examples show second and hour. Month and year are refused, because they have no length.
//
// # Replays
//
// The document leaves it open what becomes of a request that is sent again because its answer was lost. A [Runner]
// whose Replay is not 0 takes the same id and the same body for the same request, whatever server gets it, and does it
// once: the second attempt is answered what the first was, an error too, and with [ReplayHeader]. That is so
//
//   - while the first attempt is under way: the second one waits for it;
//   - for the time Replay after that, if the lock ended with the call: what the request asked for has been done;
//   - as long as that very lock is held, if the call left it behind.
//
// Otherwise nothing of the first attempt stands any more, and the same request is a new call. One that did not get its
// lock is one in any case. A release or force-release that comes again within Replay has succeeded again.
//
// Two clients that send the same bytes cannot be told apart: neither by their addresses, which proxies share and change,
// nor could that tell two runs of one program. So nobody is given an owner token that the server made for somebody
// else and that is good for anything. A request with auto_release false is done once only if it names its owner, as
// who knows the token has nothing to learn. One that does not finds the lock held, like any other, and may come to
// have it when that has ended. Nor is the function asked again: who can send a request of somebody else, to the byte, gets
// the answer to it.
package forrst
