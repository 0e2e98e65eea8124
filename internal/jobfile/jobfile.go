package jobfile

import (
	"cmp"
	"context"
	"io/fs"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/check"
	"github.com/surfin-batch/surfin/internal/jobfile/compile"
	"github.com/surfin-batch/surfin/internal/jobfile/diff"
	"github.com/surfin-batch/surfin/internal/jobfile/expand"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Source is the origin of a job file's text. [Path], [FS] and [Bytes] make one; the zero Source is none.
type Source struct{ text source.Source }

// File is a valid job file. It is immutable and safe for concurrent use.
type File struct{ def *tree.File }

// Path returns the file as it was given.
func (f *File) Path() string { return f.def.Doc.Path }

// Name returns the job's name.
func (f *File) Name() string { return f.def.Name }

// Description returns the description in the file.
func (f *File) Description() string { return f.def.Model.Description }

// Zone returns the time zone of the job's local times (rule D5).
func (f *File) Zone() *time.Location { return f.def.Clock.Zone }

// Database returns the name of the job's database.
func (f *File) Database() string { return f.def.Model.Database }

// Parameters returns the declared parameters, in the order of the file. Defaults
// with expressions such as ${today()} are computed now, in the job's time zone.
func (f *File) Parameters() []core.ParameterSpec { return f.def.ParametersNow() }

// Incrementer returns the name of the parameter that makes the next instance, or "".
func (f *File) Incrementer() string { return f.def.Model.Incrementer }

// Schedule returns when the job is due, or nil if the file does not say.
func (f *File) Schedule() *Schedule { return f.def.Schedule }

// Budget returns the limits for the runs of the job that a server starts, without defaults filled in.
func (f *File) Budget() task.Budget { return f.def.Model.Budget.Limits() }

// On returns which workers run the job where it is registered; nil means any.
func (f *File) On() *core.Placement { return f.def.On }

// Exclusive returns the key that a launch with these parameters shares with the launches that must not run at
// the same time; "" means that it excludes only its own instance.
func (f *File) Exclusive(params core.Parameters) (core.ExclusiveKey, error) {
	return compile.ExclusiveKey(f.def, params)
}

// Steps returns the names of all steps and child jobs, including nested ones and `finally`, in the order of
// the file.
func (f *File) Steps() []string { return f.def.StepNames() }

// PlaceOf returns the position of an element of the flow: "job.yaml:11:5", or for a job made in Go "job bill:
// step load"; empty means that the flow has no such element.
func (f *File) PlaceOf(element string) (place string) {
	f.def.Flow.Walk(func(e *tree.Element) {
		if e.Name == element && place == "" {
			place = cmp.Or(f.def.Doc.Place(e.Model.Node), e.Model.Node.Position(f.def.Doc.Path))
		}
	})
	return place
}

// Definition returns the texts of the file, its includes and its child jobs at any depth, and one hash of
// them (rule F4).
func (f *File) Definition() core.Definition { return f.def.Definition() }

// Source returns the origin of the file; for a file from the history, its original location.
func (f *File) Source() Source { return Source{f.def.From.Original()} }

// Expanded returns the job after include and templates, as a job file without them that has the same meaning
// in the folder of this one. Aliases are resolved and comments left out; a comment above an element names the
// use of a template that it comes from.
func (f *File) Expanded() ([]byte, error) { return expand.Emit(f.def.Doc) }

// Earlier is the file as recorded by an earlier execution.
func (f *File) Earlier(d core.Definition, reg *registry.Registry) (*File, error) {
	return checked(check.Earlier(f.def, d, reg))
}

// HasTasks reports whether the file, or a child job's file at any depth, has a step of tasks.
func (f *File) HasTasks() bool { return compile.HasTasks(f.def) }

// CheckHandlers looks for handlers of tasks that this process does not have, in the file and in its child
// jobs. The error, of Problems, lists those that no program can have; elsewhere lists those that a worker of
// another program may have.
func (f *File) CheckHandlers(types HandlerTypes) (elsewhere Problems, err error) {
	return compile.CheckHandlers(f.def, types)
}

// Compile makes the job. Requirements of the file that the databases cannot meet (an unknown name, an
// isolation level) are reported like the problems of [Load]; a component that Registry only describes is an
// error of its own.
func (f *File) Compile(deps Deps) (*model.Job, error) { return compile.Job(f.def, deps) }

// CompileRedrive makes a job of one chunk step of the file. It runs the skipped items of a plan, instead of
// the items of the reader, through the step's processors and writers (rule C12). It fails as Compile does,
// and if the plan's step is missing or is not a chunk step.
func (f *File) CompileRedrive(deps Deps, r Redrive) (*model.Job, error) {
	return compile.RedriveJob(f.def, deps, r)
}

// Changes compares the file with the definition of the instance's last execution, or of the newest one that
// may have written something, if that is another one. If the restart needs consent, it returns a
// *ChangedError with the changes.
func (f *File) Changes(ctx context.Context, r Restart) ([]Change, error) {
	return diff.Of(ctx, f.def, r)
}

// Load is Load of a job file on the disk; see [Path].
func Load(path string, reg *registry.Registry) (*File, error) { return Path(path).Load(reg) }

// Parse checks the text of a job file; path is for messages, and relative paths begin in its folder. The
// error is [Problems]. Mistakes in the files of child jobs are reported by Compile, which needs them.
func Parse(path string, text []byte, reg *registry.Registry) (*File, error) {
	return checked(check.Parse(source.Path(path), text, reg))
}

// ParseStored is [Parse] of the definition of an execution, from its history, with all files that it names: no file is read.
// name is the name in messages of a job file that was not on the disk. Relative data paths begin at the
// original folders of the files, or at the working directory.
func ParseStored(d core.Definition, name string, reg *registry.Registry) (*File, error) {
	return checked(check.Parse(source.Stored(d, name), []byte(d.Text), reg))
}

func checked(def *tree.File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{def}, nil
}

// Path is a job file on the disk. Relative paths in it are relative to its folder.
func Path(path string) Source { return Source{source.Path(path)} }

// FS is a job file in a file system, such as an embed.FS. path is slash-separated, as fs.ValidPath requires.
// The files of its child jobs are in the same file system, relative to the job file; data paths are on the
// disk, relative to the working directory.
func FS(fsys fs.FS, path string) Source { return Source{source.FS(fsys, path)} }

// Bytes is the text of a job file. name is its name in messages. Relative paths in it are relative to the
// working directory.
func Bytes(name string, text []byte) Source { return Source{source.Bytes(name, text)} }

// Made is the job of that name among the texts of job files, by the names of their jobs, that Go code has
// made of definitions (package define). A job names the files of its child jobs by their names. Messages
// about it name the step and the key, not the line.
func Made(name string, texts map[string]string) Source { return Source{source.Made(name, texts)} }

// String returns the path or the name.
func (s Source) String() string { return s.text.String() }

// IsZero reports a Source that says nothing.
func (s Source) IsZero() bool { return s.text.IsZero() }

// OnDisk reports whether the text can be read again from the disk, at String.
func (s Source) OnDisk() bool { return s.text.OnDisk() }

// Load reads and checks the job file and the files of its child jobs. If one is wrong, the error is
// [Problems], all of them; a file that cannot be read is an error of package fs.
func (s Source) Load(reg *registry.Registry) (*File, error) { return checked(check.Load(s.text, reg)) }

// Problem is one mistake in a job file: position, message, excerpt, hint.
type Problem = yamlfile.Problem

// Problems is all mistakes in a job file, by position. It is the error of [Load], [Parse] and [File.Compile]
// if the file is at fault.
type Problems = yamlfile.Problems

// The types of what a file's clients give and get.
type (
	// Deps are the dependencies of a compiled job.
	Deps = compile.Deps
	// Tasks runs the steps of tasks.
	Tasks = compile.Tasks
	// HandlerTypes are the types of tasks that have a handler.
	HandlerTypes = compile.HandlerTypes
	// Redrive describes a run of skipped items.
	Redrive = compile.Redrive
	// Secrets finds the secrets that job files name.
	Secrets = bind.Secrets
	// Schedule is when a job is due, and with which parameters.
	Schedule = tree.Schedule
	// Restart is an instance that is to continue with a file.
	Restart = diff.Restart
	// Change is a difference between two definitions of a job.
	Change = diff.Change
	// ChangedError refuses a restart because committed work depends on what has changed.
	ChangedError = diff.ChangedError
)

// Given returns secrets, some of them given at a launch as the values of secret parameters. The rest come
// from others, which may be nil.
func Given(values map[string]string, others Secrets) Secrets { return bind.Given(values, others) }
