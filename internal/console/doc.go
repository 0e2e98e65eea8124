// Package console is the web console: pages of HTML around the service (package operator) and the task
// service (package runtime), for `surfin serve`. A page has no rule, no SQL and no sentence of its own:
// sentences are package wording's, numbers and durations package humanize's, drawings package picture's.
// Each page has a file of Go, which fills a view, and a file of HTML, which shows it. It works without
// the script; the script adds the palette, keys and live numbers.
//
// It imports core, ports, operator, runtime, jobfile, settings, refusal, wording, and the helpers
// errorclass, humanize, nearest, picture and secret.
package console
