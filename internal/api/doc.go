// Package api is the REST API of the service (package operator), with JSON, for
// `surfin serve`; internal/access admits its requests. A client names
// jobs, never files. Errors are problem details (RFC 9457). [Document]
// describes it as OpenAPI. It imports core, operator, runtime, settings,
// internal/access, internal/changes, internal/jobfile and huma.
package api
