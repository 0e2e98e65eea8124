// Package job launches jobs and walks their flows: identity and parameters,
// exactly one active execution per instance, leases and heartbeats, take-over of
// lost executions, restart from the step that did not complete.
//
// The walk of a flow is in walk.go, its journal in journal.go. It acts through a port, so
// that a plan (plan.go) is the same walk, and nothing else predicts what a launch does.
//
// It imports core only, and knows steps through the interfaces of core.
package job
