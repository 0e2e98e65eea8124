// Package wording is how Surfin speaks to people: sentences about executions,
// plans, dry runs and next commands. Layout, colors and streams are
// internal/cli's. It imports operator, for the data, core and internal/humanize.
package wording
