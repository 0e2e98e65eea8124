// Package api is the REST API: the service (package operator) over HTTP, with JSON, for `surfin
// serve`. It has no rules of running of its own: an operation makes a request of the service, and
// writes its view or its refusal. In addition it has the functions of a server: authentication,
// rate limits, and limits of the size of a request.
//
// A client names jobs, never files. Errors are problem details (RFC 9457). [Document] describes it
// as OpenAPI.
//
// It imports core, operator, runtime, settings, internal/jobfile and huma.
package api
