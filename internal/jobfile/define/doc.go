// Package define makes jobs in Go, without a job file: [NewJob] and the methods of [Job].
//
// A definition becomes the text of a job file ([Job.Text]), which is checked, compiled and kept as
// one (rule F4).
//
// It imports internal/jobfile and core with its folders, and no fx.
package define
