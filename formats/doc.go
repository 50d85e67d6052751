// Package formats reads lock files: it finds the protocol of a content, the holder of the lock, and whether
// the lock is stale.
//
//	formats.Detect(content)                        // tower, semaphore, swarm, beads, pid, forrst or none
//	formats.FactsOf(content, origin)               // the holder, and when the lock is stale
//	rule.Govern(facts, mtime)                      // the same under an administrator's rule
//	formats.StatementIn(name, content, writer)     // the pid, if the content is nothing else
//	formats.EvidenceIn(content, writer)            // evidence of a lock in a content of no format
//	formats.WordsOf(name)                          // whether a name indicates a lock or data
//	formats.Check(path, rule)                      // the state of the lock in a file, and why
//	formats.Wait(ctx, path)                        // until the lock in a file is free or stale
//
// Each protocol has its own package below this one, with the type of its lock file, Parse, Validate, Render,
// FactsOf, and other parts of its specification. Import one of them for one protocol, and this package to
// read any.
//
// # Imports
//
// This package needs all formats, and each format needs the types of the result. So these types have their
// own package:
//
//	formats  ->  formats/tower, formats/semaphore, ...  ->  formats/lockfact
//
// This package has the types of lockfact under its own name ([Facts] is lockfact.Facts), so one import is
// enough. Formats do not register themselves: table.go has a row for each. These packages import only each
// other and the standard library.
//
// # Recognition
//
// A content has the format of its mark, such as lock_version "v1" in JSON. If it breaks other rules of the
// format, it is invalid, guarded like its format, and never stale. Any other content is [None], also an empty
// or half-written file. None is stale only under a rule with a time. Members of JSON count only with the
// exact spelling of the specification. JSON with a member twice is invalid.
//
// The only format of plain text without a mark is a pid; [StatementIn] lists all its shapes. A content of no
// format makes an exclusively created name a lock by two independent pieces of evidence
// ([lockfact.Evidence]). [EvidenceIn] finds those in the content, [WordsOf] the one in the name.
// testdata/corpus.txt has lock files of real programs and similar data; a test counts the correct results.
//
// # Time
//
// Only [Wait] and [Check] read a clock. Timestamps in a content are on the clock of its writing host.
// [Origin] has the distance of this clock from cluster time, and [FactsOf] translates. The packages below use
// the clock of the content. A lock is stale after the last instant of its time, not at it. A timestamp in
// whole seconds is cut, so its time counts from the latest instant that it can mean.
package formats
