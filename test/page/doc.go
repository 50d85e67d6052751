// Package page shows what an operator sees of a cluster in a browser: a headless Chromium, on the page that lockfs ui opens.
//
// # Ten thousand locks
//
// BenchmarkBrowserWithManyLocks has the browser show 10,000 locks of three servers (500 rows of them), of which some twenty a second
// come or go, and looks for one more lock that comes and goes:
//
//	go test ./test/page -run '^$' -bench BrowserWithManyLocks -benchtime 20x
//
// Five times, on a machine of two cores that servers, mounts and browser shared with other work (a load of 5 to 19):
//
//	between frames      median 16.7 ms    99th percentile 133 to 217 ms    longest 0.5 to 3.1 s
//	a lock is seen      median 1.1 to 1.2 s    longest 1.9 to 5.3 s
//	a lock is gone      median 1.3 to 1.7 s    longest 2.3 to 8.2 s
//
// So there it did stutter now and then; a quiet machine was not to be had. Of the browser's own time, the ages of a second take 6 ms and
// a row that is another one 8 ms (in a page of 500 rows, while it is not kept waiting). How soon a lock is seen goes with how long the
// cluster takes to list all of them, as a page lists for a sixth of the time at most. With few locks it is a quarter of a second
// (TestAnOperatorLooksAtACluster).
package page
