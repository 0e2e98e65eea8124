// Package define makes jobs in Go, without a job file: [NewJob] and the methods of [Job].
//
// A definition becomes the text of a job file ([Job.Text]), which the loader of job files checks and
// compiles: a job in Go can do everything that a file can, and is checked as one. The history keeps this text
// as the definition (rule F4), so that a restart after a change of the Go code is judged like one after a
// change of a file. For a component that is Go code, the text has its Go type and a name made of the job, the
// step and the role.
//
// A text in a definition has the same meaning as in a file: ${params.day} is an expression, and a literal ${
// is written $${.
//
// Package batch has these names, too, and makes components of Go values and constructors.
//
// It imports internal/jobfile and core with its folders, and no fx.
package define
