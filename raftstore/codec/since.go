package codec

import "google.golang.org/protobuf/reflect/protoreflect"

// since has the version of each later addition to store.proto, by the full names of fields and of values of
// enumerations. Operations and queries are fields. An addition to store.proto needs an entry here. A program
// does not know additions later than version.Newest.
var since = map[protoreflect.FullName]uint32{}
