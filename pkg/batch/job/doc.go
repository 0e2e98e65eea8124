// Package job launches jobs and walks their flows: identity and parameters,
// exactly one active execution per instance, leases and heartbeats, take-over of
// lost executions, restart from the step that did not complete.
//
// It imports core only, and knows steps through core's interfaces.
package job
