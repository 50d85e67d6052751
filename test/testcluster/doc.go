// Package testcluster is what the tests of the built program share: the program, a [Cluster] of servers on hosts made of namespaces,
// guests that mount without being servers, and processes on them that use locks.
//
// A [Shell], and an [Actor] that knows flock and fcntl, do step by step what they are told, so that somebody else can do
// something in between. A [Job], and [Jobs] of all [Clients], are workers that all want one lock, seen by a [Witness] who
// tells whether two had it at once. Programs are in test/clients and know nothing of lockfs.
//
// What begins with Require fails the test at once, what begins with Await waits until it is so, and fails the test if that
// does not come. All ends with the test. Each package of tests has a TestMain that calls [Main].
package testcluster
