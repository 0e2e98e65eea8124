// Package ports has the ports of the repository: the history of executions as the engine, the
// operator and the workers ask for it. pkg/batch/repository implements them; clients take the small
// interfaces.
//
// It imports core with its folders only.
package ports
