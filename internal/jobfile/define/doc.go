// Package define makes jobs in Go, without a job file: [NewJob] and the methods of [Job].
//
// A definition becomes the text of a job file ([Job.Text]), which the loader of job files
// checks and compiles: a job in Go can do what a file can, and is checked as one. The
// text is the definition that the history keeps (rule F4), so that a restart after a
// change of the Go code is judged as one after a change of a file. Of a component that is
// Go code the text has a name, made of the job, the step and the role, and its Go type.
//
// A text in a definition means what it means in a file: ${params.day} is an expression,
// and a literal ${ is written $${.
//
// Package batch has these names, too, and makes components of Go values and
// constructors.
//
// It imports internal/jobfile and core with its folders, and no fx.
package define
