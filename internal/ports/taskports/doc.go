// Package taskports has the ports of the repository for tasks, and their transition table.
//
// It imports core with its folders and package ports.
package taskports
