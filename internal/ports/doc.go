// Package ports has the ports of the repository: what the engine, the operator and the workers ask of the
// history of executions, each with its requests, records, errors and transition table. pkg/batch/repository
// implements them; every client declares the few methods it uses, or takes one of the small interfaces.
//
// It imports core with its folders only.
package ports
