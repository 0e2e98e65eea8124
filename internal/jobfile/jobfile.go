package jobfile

import (
	"cmp"
	"context"
	"io/fs"
	"time"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/check"
	"github.com/surfin-batch/surfin/internal/jobfile/compile"
	"github.com/surfin-batch/surfin/internal/jobfile/diff"
	"github.com/surfin-batch/surfin/internal/jobfile/expand"
	"github.com/surfin-batch/surfin/internal/jobfile/outline"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Source is the origin of a job file's text: [Path], [FS], [Bytes]; the zero Source is none.
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

// Parameters returns the declared parameters, in order; defaults such as
// ${today()} are computed now.
func (f *File) Parameters() []core.ParameterSpec { return f.def.ParametersNow() }

// Incrementer returns the parameter that makes the next instance, or "".
func (f *File) Incrementer() string { return f.def.Model.Incrementer }

// Schedule returns when the job is due, or nil.
func (f *File) Schedule() *Schedule { return f.def.Schedule }

// Budget returns the limits of a server's runs, without defaults.
func (f *File) Budget() task.Budget { return f.def.Model.Budget.Limits() }

// On returns which workers run the job where it is registered; nil means any.
func (f *File) On() *core.Placement { return f.def.On }

// Exclusive returns the key shared by launches that must not run at the same time; "" means only
// its own instance.
func (f *File) Exclusive(params core.Parameters) (core.ExclusiveKey, error) {
	return compile.ExclusiveKey(f.def, params)
}

// Steps returns the names of all steps and child jobs, including `finally`, in order.
func (f *File) Steps() []string { return f.def.StepNames() }

// PlaceOf returns an element's position, "job.yaml:11:5" or "job bill: step load"; empty if not
// found.
func (f *File) PlaceOf(element string) (place string) {
	f.def.Flow.Walk(func(e *tree.Element) {
		if e.Name == element && place == "" {
			place = cmp.Or(f.def.Doc.Place(e.Model.Node), e.Model.Node.Position(f.def.Doc.Path))
		}
	})
	return place
}

// Outline returns the elements of the flow with their edges and places.
func (f *File) Outline() outline.Job { return outline.Of(f.def) }

// Definition returns the texts of the file, its includes and child jobs, and one hash (rule F4).
func (f *File) Definition() core.Definition { return f.def.Definition() }

// Source returns the origin of the file; for a file from the history, its original location.
func (f *File) Source() Source { return Source{f.def.From.Original()} }

// Expanded returns the job as a file without include and templates.
func (f *File) Expanded() ([]byte, error) { return expand.Emit(f.def.Doc) }

// Earlier is the file as recorded by an earlier execution.
func (f *File) Earlier(d core.Definition, reg *registry.Registry) (*File, error) {
	return checked(check.Earlier(f.def, d, reg))
}

// HasTasks reports whether the file, or a child job's file at any depth, has a step of tasks.
func (f *File) HasTasks() bool { return compile.HasTasks(f.def) }

// CheckHandlers looks for task handlers that this process lacks: the error has those that no
// program can have, elsewhere the others.
func (f *File) CheckHandlers(types HandlerTypes) (elsewhere Problems, err error) {
	return compile.CheckHandlers(f.def, types)
}

// CheckMySQL reports components that do not work with a database of MySQL (rule MY1).
func (f *File) CheckMySQL(isMySQL func(database string) bool) error {
	return compile.CheckMySQL(f.def, isMySQL)
}

// Compile makes the job, or reports, like [Load], names that the databases lack.
func (f *File) Compile(deps Deps) (*model.Job, error) { return compile.Job(f.def, deps) }

// CompileRedrive makes a job of one chunk step that runs the skipped items of a plan (rule C12).
func (f *File) CompileRedrive(deps Deps, r Redrive) (*model.Job, error) {
	return compile.RedriveJob(f.def, deps, r)
}

// SplitRaw splits the text of an item that a step could not read, as its reader does; nil if its texts
// have no columns.
func (f *File) SplitRaw(params core.Parameters, step string, raw item.RawText) ([]itemextra.Field, error) {
	return compile.SplitRaw(f.def, params, step, raw)
}

// Changes compares the file with the instance's newest execution that may have written
// something; a *ChangedError if the restart needs consent.
func (f *File) Changes(ctx context.Context, r Restart) ([]Change, error) {
	return diff.Of(ctx, f.def, r)
}

// Since returns the differences to the definition of an earlier execution of the job, and their
// unified diff.
func (f *File) Since(before *File, execution core.JobExecutionID, params core.Parameters) (changes []Change, unified string) {
	return diff.Between(before.def, execution, f.def, params)
}

// Load is Load of a job file on the disk; see [Path].
func Load(path string, reg *registry.Registry) (*File, error) { return Path(path).Load(reg) }

// Parse checks the text of a job file; relative paths begin in path's folder. The error is
// [Problems]. Mistakes in child jobs' files are reported by Compile.
func Parse(path string, text []byte, reg *registry.Registry) (*File, error) {
	return checked(check.Parse(source.Path(path), text, reg))
}

// ParseStored is [Parse] of an execution's definition; no file is read.
func ParseStored(d core.Definition, name string, reg *registry.Registry) (*File, error) {
	return checked(check.Parse(source.Stored(d, name), []byte(d.Text), reg))
}

func checked(def *tree.File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{def}, nil
}

// Path is a job file on the disk; paths in it are relative to its folder.
func Path(path string) Source { return Source{source.Path(path)} }

// FS is a job file in a file system; data paths are on the disk, relative to the working directory.
func FS(fsys fs.FS, path string) Source { return Source{source.FS(fsys, path)} }

// Bytes is the text of a job file, named for messages; paths are relative to the working directory.
func Bytes(name string, text []byte) Source { return Source{source.Bytes(name, text)} }

// Made is the job of that name among the texts made by Go code (package define), child jobs
// included.
func Made(name string, texts map[string]string) Source { return Source{source.Made(name, texts)} }

// String returns the path or the name.
func (s Source) String() string { return s.text.String() }

// IsZero reports a Source that says nothing.
func (s Source) IsZero() bool { return s.text.IsZero() }

// OnDisk reports whether the text can be read again from the disk, at String.
func (s Source) OnDisk() bool { return s.text.OnDisk() }

// Load reads and checks the job file and its child jobs' files. The error is [Problems], or of
// package fs.
func (s Source) Load(reg *registry.Registry) (*File, error) { return checked(check.Load(s.text, reg)) }

// Problem is one mistake in a job file.
type Problem = yamlfile.Problem

// Problems is all mistakes in a job file, by position.
type Problems = yamlfile.Problems

// The types of what a file's clients give and get.
type (
	Deps         = compile.Deps
	Tasks        = compile.Tasks
	HandlerTypes = compile.HandlerTypes
	Redrive      = compile.Redrive
	Secrets      = bind.Secrets
	Schedule     = tree.Schedule
	Restart      = diff.Restart
	Change       = diff.Change
	ChangedError = diff.ChangedError
)

// Given returns secrets with values given at a launch; others, which may be nil, has the rest.
func Given(values map[string]string, others Secrets) Secrets { return bind.Given(values, others) }
