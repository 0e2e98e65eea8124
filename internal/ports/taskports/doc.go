// Package taskports has the ports of the repository for tasks: deliveries, attempts, workers, the leader,
// registered jobs and settings, and the transition table of tasks. pkg/batch/repository/tasks implements
// them for the workers, the task service and the operator.
//
// It imports core with its folders and package ports.
package taskports
