package codec

import "google.golang.org/protobuf/reflect/protoreflect"

// since is what a version after the first has added, by the full names of fields, also those of operations and queries, and of
// values of enumerations. Who adds something to store.proto says here since when. A program knows nothing of what is later than
// version.Newest.
var since = map[protoreflect.FullName]uint32{}
