// Package browser tests the console in a real browser: Chromium opens the pages of real `surfin serve`
// processes on SQLite and PostgreSQL, while real jobs and workers run. Run it with `make console`.
//
// On every page that a test visits, nothing is written to the console of the browser, the policy of
// the page is kept, no other host is asked, and axe finds nothing, in light and dark, narrow and wide.
// Pictures of the pages are in bin/console.
//
// It is a module of its own, because nothing else needs the driver of the browser. It imports the kits
// for tests; nothing imports it. The folder axe has files of others: see foreign_test.go.
package browser
