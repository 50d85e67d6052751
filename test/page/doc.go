// Package page tests the page of a cluster in a headless Chromium, as opened by lockfs ui. Each page passes
// axe-core, in both colour schemes and on a narrow screen.
//
// # Ten thousand locks
//
// BenchmarkBrowserWithManyLocks shows 10,000 locks of three servers. Some twenty a second come and go on the
// first page. It takes and releases one more lock, and measures when the page shows it:
//
//	go test ./test/page -run '^$' -bench BrowserWithManyLocks -benchtime 20x
//
// On a machine of two cores for servers, mounts and browser, with 500 rows on a page instead of today's 50:
//
//	between frames      median 16.7 ms    99th percentile 50 ms    longest 300 ms
//	a lock is seen      median 0.9 s      longest 1.4 s
//	a lock is gone      median 1.2 s      longest 1.5 s
//
// The columns of the table have fixed widths. Without them, each changed row laid out all rows, and the 99th
// percentile was 117 ms. With a load of 5 to 19, frames were up to 3 s apart, and a lock was seen after up
// to 5 s. The delay depends on the time to list all locks: a page lists for at most a sixth of the time.
// With few locks the delay is a quarter of a second (TestAnOperatorLooksAtACluster).
package page
