// Package job launches jobs and runs their executions: identity and parameters,
// one active execution per instance, leases, take-over, parking and resuming.
// Read launcher.go, execution.go, live.go, then atomic.go, split.go, finally.go
// and park.go. Folder walk walks the flow, journal has its journal, planner its
// plans. It imports core, leases and its own folders, and knows steps through
// the interfaces of core.
package job
