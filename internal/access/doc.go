// Package access guards the HTTP of a server: clients and roles, rates, origins,
// and bounds of requests. The REST API and the console share one [Guard]; each
// renders refusals as its clients read them. It imports settings,
// internal/errorclass and the standard library.
package access
