// Package job launches jobs and walks their flows: identity and parameters, exactly one active
// execution per instance, leases and heartbeats, take-over of lost executions, restart from the step
// that did not complete.
//
// walk.go walks a flow, journal.go holds its journal. The walk acts through a port, so a plan (plan.go)
// is the same walk: no other code predicts a launch.
//
// It imports core only, and knows steps through the interfaces of core.
package job
