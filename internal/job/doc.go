// Package job launches jobs and runs their executions: identity and parameters, exactly one active
// execution per instance, leases and heartbeats, take-over of lost executions, parking and resuming.
//
// Read launcher.go (a launch), execution.go (from its start to its end), live.go (what the walk of the
// flow does to the world), then atomic.go, split.go, finally.go and park.go. The flow itself is walked
// in the folder walk, from the journal in the folder journal; a plan of a launch is in planner.
//
// It imports core, leases and its own folders, and knows steps through the interfaces of core.
package job
