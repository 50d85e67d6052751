// Package formats understands lock files: which protocol a content speaks, who holds the lock, and
// whether it is stale.
//
//	formats.Detect(content)                        // tower, semaphore, swarm, beads, pid, forrst or none
//	formats.FactsOf(content, origin)               // who holds the lock, and when it is stale
//	rule.Govern(facts, mtime)                      // the same under an administrator's rule
//	formats.StatementIn(name, content, writer)     // the pid, if that is all that a content says
//	formats.EvidenceIn(content, writer)            // what in a content of no format makes a lock of an exclusive name
//	formats.WordsOf(name)                          // whether a name says that it is a lock's, or data's
//	formats.Check(path, rule)                      // what is known of the lock in a file, and why
//	formats.Wait(ctx, path)                        // until the lock in a file is free or stale
//
// Each protocol has a package of its own below this one, with the type of its lock file, Parse,
// Validate, Render, FactsOf and what else its specification defines. Import one of them alone to speak
// one protocol, and this package to read any.
//
// # Who imports whom
//
// Recognising a content needs all the formats, and each format needs the words in which the answer is
// given. So those words are in a package of their own:
//
//	formats  ->  formats/tower, formats/semaphore, ...  ->  formats/lockfact
//
// lockfact holds types only. This package gives them under its own name ([Facts] is lockfact.Facts), so
// one import is enough either way. Nothing registers itself: table.go has a row for each format, of what differs here.
// Nothing here imports the rest of lockfs, or anything that is not in the standard library.
//
// # What is recognised
//
// A content is of the format whose mark it has, such as lock_version "v1" in JSON, whether or not it keeps to
// all the rules of that: one that does not is invalid, guarded as its format is, and never stale. Anything
// else is [None], also an empty or a half-written file, and None is never stale unless a rule says after how
// long. Members of JSON count only when they are spelled exactly as specified, and JSON in which one appears
// twice is invalid.
//
// The only plain text that is of a format by itself is a pid; all its shapes are in
// [StatementIn]. A content of no format makes a lock of a name that was created exclusively if there are two independent
// pieces of evidence ([lockfact.Evidence]): [EvidenceIn] finds those in the content, [WordsOf] the one in the name.
// testdata/corpus.txt has lock files of real programs and data that looks like them; a test says how many are told apart.
//
// # Time
//
// Nothing here reads a clock but [Wait] and [Check]. Timestamps in a content are on the clock of the host that wrote it;
// [Origin] carries that clock's distance from cluster time, and [FactsOf] translates. The
// packages below judge on the clock of the content. A lock is stale when its time is over, not at the
// last instant of it; and as a timestamp in whole seconds was cut to that, its time is over when that of the latest
// instant which it can mean is.
package formats
