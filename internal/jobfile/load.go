package jobfile

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// File is a valid job file. It is immutable and safe for concurrent use.
type File struct {
	doc  *yamlfile.Document
	from Source
	// folder is the absolute folder of the file; empty means that the file is not on the disk.
	folder string
	name   string
	model  *jobModel
	specs  []core.ParameterSpec
	// flow and finally are the elements as a tree, steps all steps and child jobs in it, in the order of the
	// file.
	flow, finally *listDef
	steps         []*stepDef
	outs          map[string]*row.Schema // named results of steps, where they have types
	types         *itemTypes
	listeners     []*componentUse
	expect        *condition
	schedule      *Schedule           // nil means none
	on            *core.Placement     // of the registered job; nil means any worker
	exclusive     *expression.Program // the key; nil means that the file has none
	included      []included          // the files that it includes, at any depth
	zone          *time.Location
	calendars     map[string]*calendar.Calendar
	now           func() time.Time
	clockDefaults []clockDefault
	badDefaults   bool // the file's defaults have a mistake
}

// Path returns the file as it was given.
func (f *File) Path() string { return f.doc.Path }

// Name returns the job's name.
func (f *File) Name() string { return f.name }

// Description returns the description in the file.
func (f *File) Description() string { return f.model.Description }

// Zone returns the time zone of the job's local times (rule D5).
func (f *File) Zone() *time.Location { return f.zone }

// Database returns the name of the job's database.
func (f *File) Database() string { return f.model.Database }

// Parameters returns the declared parameters, in the order of the file. Defaults
// with expressions such as ${today()} are computed now, in the job's time zone.
func (f *File) Parameters() []core.ParameterSpec { return f.parametersAt(f.now()) }

// Steps returns the names of all steps and child jobs, including nested ones and `finally`, in the order of
// the file.
func (f *File) Steps() []string {
	names := make([]string, len(f.steps))
	for i, s := range f.steps {
		names[i] = s.name
	}
	return names
}

// PlaceOf returns the position of an element of the flow: "job.yaml:11:5", or for a job made in Go "job bill:
// step load"; empty means that the flow has no such element.
func (f *File) PlaceOf(element string) (place string) {
	f.flow.walk(func(e *elementDef) {
		if e.name == element && place == "" {
			place = cmp.Or(f.doc.Place(e.model.node), e.model.node.Position(f.doc.Path))
		}
	})
	return place
}

// Definition returns the texts of the file, its includes and its child jobs at any depth, and one hash of
// them (rule F4).
func (f *File) Definition() core.Definition {
	files := map[string]core.DefinitionFile{}
	f.addFiles("", files)
	return core.NewDefinition(f.doc.Text, f.from.location(), slices.Collect(maps.Values(files)))
}

// addFiles adds the files that this one names. name is its own name.
func (f *File) addFiles(name string, files map[string]core.DefinitionFile) {
	for _, i := range f.included {
		at := nameFrom(name, i.name)
		files[at] = core.DefinitionFile{Name: at, Text: i.doc.Text, Path: i.from.location()}
	}
	for _, s := range f.steps {
		if s.child == nil || s.child.file == nil {
			continue
		}
		child := s.child.file
		at := nameFrom(name, s.child.model.File)
		if _, known := files[at]; !known {
			files[at] = core.DefinitionFile{Name: at, Text: child.doc.Text, Path: child.from.location()}
			child.addFiles(at, files)
		}
	}
}

// Source returns the origin of the file; for a file from the history, its original location.
func (f *File) Source() Source {
	from := f.from
	from.stored = nil
	return from
}

// Load is Load of a job file on the disk; see [Path].
func Load(path string, reg *registry.Registry) (*File, error) { return Path(path).Load(reg) }

// Parse checks the text of a job file; path is for messages, and relative paths begin in its folder. The
// error is [Problems]. Mistakes in the files of child jobs are reported by Compile, which needs them.
func Parse(path string, text []byte, reg *registry.Registry) (*File, error) {
	return Path(path).parse(text, reg)
}

// ParseStored is [Parse] of the definition of an execution, see [Stored].
func ParseStored(d core.Definition, name string, reg *registry.Registry) (*File, error) {
	return Stored(d, name).parse([]byte(d.Text), reg)
}

// Earlier is the file as recorded by an earlier execution.
func (f *File) Earlier(d core.Definition, reg *registry.Registry) (*File, error) {
	return f.from.asStored(d).parse([]byte(d.Text), reg)
}

// parse is Parse for a stored text of the source.
func (s Source) parse(text []byte, reg *registry.Registry) (*File, error) {
	l := newLoader(s, text, reg)
	l.lenient = true
	return l.parse()
}

func newLoader(from Source, text []byte, reg *registry.Registry) *loader {
	doc, problems := yamlfile.Parse(from.path, text)
	if from.made {
		doc.Describe = describe(from.path)
	}
	l := &loader{problems: problems, reg: reg, now: time.Now, childFiles: &childFiles{files: map[string]*File{}}, isStep: map[string]bool{}}
	l.file = &File{doc: doc, from: from, folder: from.folder(), outs: map[string]*row.Schema{}}
	l.parents = []string{from.identity()}
	return l
}

func (l *loader) parse() (*File, error) {
	if l.file.doc.Root != nil {
		l.load()
	}
	var all Problems
	if err := l.problems.Err(); err != nil {
		all = append(all, err.(Problems)...) //nolint:forcetypeassert,errorlint // a collector has nothing else
	}
	if len(l.parents) == 1 && !l.lenient { // the problems of children are reported once, after the file's own
		all = append(all, l.childFiles.problems...)
	}
	if len(all) > 0 {
		return nil, all
	}
	return l.file, nil
}

// fixed reads the scalars of the file's own keys: ${...} is for the configs of components and for defaults,
// and is refused here.
func (l *loader) fixed(n *yamlfile.Node, f yamlfile.Field, _ reflect.Type) (yamlfile.Value, bool) {
	t, err := parseTemplate(n.Text)
	switch {
	case err != nil:
		reportTemplate(l.problems, n, f.Key, err)
	case len(t.holes) > 0:
		l.problems.AddAt(n, t.holes[0].offset, f.Key+" takes no ${...} in this version", "the configs of components do, and the defaults of parameters; a literal ${ is written $${")
	default:
		return yamlfile.Value{Text: t.literal()}, true
	}
	return yamlfile.Value{}, false
}

// loader is the state of one Load.
type loader struct {
	file      *File
	problems  *yamlfile.Collector
	reg       *registry.Registry
	types     itemTypes
	stepNames []string
	isStep    map[string]bool // the same
	// invalidTasklets are the steps with a mistake in their tasklet: their results are unknown.
	invalidTasklets []string
	now             func() time.Time
	// elements by name; refused are names of elements that could not be read.
	elements map[string]*elementDef
	refused  map[string]bool
	stepRefs []stepRef
	// brokenFlow means that elements or targets are wrong, so that the graph cannot be checked.
	brokenFlow bool
	// brokenUses means that the use of a template is wrong, so that not all elements are known.
	brokenUses bool
	// parents are the files from the first one to this one, each the parent of the next.
	parents    []string
	childFiles *childFiles
	// lenient overlooks mistakes in other files: see Parse.
	lenient bool
}

func (l *loader) load() {
	f := l.file
	if !l.includeFiles() {
		return
	}
	_ = l.readTimezone() //nolint:errcheck // checkTimezone reports it
	l.expandTemplates()
	f.model = &jobModel{}
	d := &yamlfile.Decoder{Collector: l.problems, Forms: modelDecoders(), Scalar: l.fixed, Meant: meantKey}
	d.Decode(f.doc.Root, "a job file", reflect.ValueOf(f.model).Elem())
	f.name = f.model.Job
	if at := f.doc.Root.Get("job"); at != nil && at.Kind == yamlfile.Scalar && !at.Empty && (f.name != "" || at.Text == "") && !jobName.MatchString(f.name) {
		l.problems.Add(at, fmt.Sprintf("%q is no name for a job", f.name), "letters, digits, _ - and . are allowed, at most 100, beginning with a letter")
	}
	l.file.now = l.now
	l.checkTimezone()
	l.declareCalendars()
	l.declareTypes(f.model)
	l.declareParameters(f.model)
	l.checkIncrementer()
	l.checkInherit()
	l.checkSchedule()
	l.file.on = l.on(l.file.model.On, true, nil)
	l.checkBudget(l.file.model.Budget)
	l.checkExclusive()
	f.types = &l.types
	l.checkDefaults()
	l.declareElements()
	for _, ref := range f.model.Listeners {
		f.listeners = append(f.listeners, l.resolve(registry.KindListener, ref, location{beforeFlow: true}))
	}
	l.checkElements(f.flow)
	l.checkElements(f.finally)
	f.expect = l.condition(f.model.Expect, "expect", location{afterFlow: true})
	l.checkFlow()
	l.checkFiles()
	l.checkRefills()
	l.checkNamedSteps()
	l.checkResumable()
	l.checkRemoteSplits()
	l.checkStepRefs()
}
