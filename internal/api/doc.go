// Package api is the REST API: the service (package operator) over HTTP, with JSON, for
// `surfin serve`. It has no rules of running of its own: an operation makes a request of the
// service, and writes its view or its refusal. Beside that it has what a server needs: who
// may call it, how often, and how large a request may be.
//
// A client names jobs by their names, never files. Errors are problem details (RFC 9457).
// [Document] is the description of it, as OpenAPI.
//
// It imports core, operator, runtime, settings, internal/jobfile and huma.
package api
