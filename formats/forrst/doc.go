// Package forrst is the Forrst atomic lock extension: what travels in requests and responses, how keys
// become the names of files, and the lock file that a lockfs server keeps for a key.
//
//	request, err := forrst.ParseRequest(body)
//	options, err := request.LockOptions() // nil: no lock is asked for
//	key, err := options.FullKey(request.Call.Function)
//	name, err := forrst.FileName(key)
//
// [Guard] is the server's side of the extension, in front of any [http.Handler] that has the functions and with
// any [Store] of locks. [Upstream] is a handler for functions that another server has.
//
//	http.Handle("POST /forrst", &forrst.Guard{Store: store, Next: functions})
//
// The types render with the names and the order of the specification's examples. What they are read
// from must match exactly: encoding/json's forgiveness for upper and lower case and for members that
// appear twice is not wanted where a lock depends on it.
//
// # Durations
//
// A duration is a whole number and one of the units millisecond, second, minute, hour, day and week.
// The examples show second and hour. Month and year are refused, because they have no length.
package forrst
