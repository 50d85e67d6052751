// Package page shows what an operator sees of a cluster in a browser: a headless Chromium, on the page that lockfs ui opens.
//
// # Ten thousand locks
//
// BenchmarkBrowserWithManyLocks has the browser show 10,000 locks of three servers (500 rows of them), of which some twenty a second
// come or go, and looks for one more lock that comes and goes:
//
//	go test ./test/page -run '^$' -bench BrowserWithManyLocks -benchtime 20x
//
// On a machine of two cores that servers, mounts and browser share, and nothing else:
//
//	between frames      median 16.7 ms    99th percentile 50 ms    longest 300 ms
//	a lock is seen      median 0.9 s      longest 1.4 s
//	a lock is gone      median 1.2 s      longest 1.5 s
//
// Before the columns of the table had fixed widths the 99th percentile was 117 ms: each row that changed had all of them laid out anew.
// On a machine that is busy with other things (a load of 5 to 19) frames are up to 3 s apart, and a lock is seen after up to 5 s. How
// soon it is goes with how long the cluster takes to list all of them, as a page lists for a sixth of the time at most. With few locks it is
// a quarter of a second (TestAnOperatorLooksAtACluster).
package page
