// Package testcluster has the shared parts of tests of the built program: the program, a [Cluster] of
// servers on hosts made of namespaces, guests with a mount but without a server, and processes with locks on
// them.
//
// A [Shell], and an [Actor] with flock and fcntl, run step by step, so a test can do something in between. A
// [Job], and [Jobs] of all [Clients], are workers competing for one lock. A [Witness] records whether two
// held it at once. Client programs are in test/clients and know nothing of lockfs.
//
// Functions with the prefix Require fail the test at once. Functions with the prefix Await wait for a
// condition, and fail the test after a timeout. Everything ends with the test. Each package of tests has a
// TestMain that calls [Main].
package testcluster
