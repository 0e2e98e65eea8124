package jobfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// File is a job file that was read and found right. It is immutable and safe for
// concurrent use.
type File struct {
	doc   *strict.Document
	dir   string
	name  string
	model *jobModel
	specs []core.ParameterSpec
	steps []*stepDef
	outs  map[string]*row.Schema // named results of steps, where they have types
	types *itemTypes
	env   core.ExpressionEnv
}

// Path returns the file as it was given.
func (f *File) Path() string { return f.doc.Path }

// Name returns the job's name.
func (f *File) Name() string { return f.name }

// Description returns what the file says the job is for.
func (f *File) Description() string { return f.model.Description }

// Database returns the name of the job's database.
func (f *File) Database() string { return f.model.Database }

// Parameters returns the declared parameters, in the order of the file. Defaults
// with expressions such as ${today()} were computed when the file was loaded.
func (f *File) Parameters() []core.ParameterSpec { return slices.Clone(f.specs) }

// Steps returns the names of the steps, in the order of the file.
func (f *File) Steps() []string {
	names := make([]string, len(f.steps))
	for i, s := range f.steps {
		names[i] = s.name
	}
	return names
}

// Definition returns the text of the file and its hash (rule F4).
func (f *File) Definition() core.Definition {
	sum := sha256.Sum256([]byte(f.doc.Text))
	return core.Definition{Hash: hex.EncodeToString(sum[:]), Text: f.doc.Text}
}

// Load reads and checks a job file. Where the file is wrong, the error is
// [Problems], all of them; a file that cannot be read is an error of package os.
func Load(path string, reg *core.Registry) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	return Parse(path, text, reg)
}

// Parse checks the text of a job file; path is for messages, and its folder is
// where relative paths begin. The error is [Problems].
func Parse(path string, text []byte, reg *core.Registry) (*File, error) {
	doc, problems := strict.Parse(path, text)
	l := &loader{problems: problems, reg: reg, now: time.Now}
	l.file = &File{doc: doc, dir: filepath.Dir(path), outs: map[string]*row.Schema{}}
	if doc.Root != nil {
		l.load()
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return l.file, nil
}

// fixed reads the scalars of the file's own keys: ${...} is for the configs of
// components and for defaults, and is refused here.
func (l *loader) fixed(n *strict.Node, f strict.Field, _ reflect.Type) (strict.Value, bool) {
	t, err := parseTemplate(n.Text)
	switch {
	case err != nil:
		l.problems.AddAt(n, offsetOf(err), f.Key+": "+err.Error(), "a literal ${ is written $${")
	case len(t.holes) > 0:
		l.problems.AddAt(n, t.holes[0].offset, f.Key+" takes no ${...} in this version", "the configs of components do, and the defaults of parameters; a literal ${ is written $${")
	default:
		return strict.Value{Text: t.literal()}, true
	}
	return strict.Value{}, false
}

// loader is the state of one Load.
type loader struct {
	file      *File
	problems  *strict.Collector
	reg       *core.Registry
	types     itemTypes
	stepNames []string
	now       func() time.Time
}

func (l *loader) load() {
	f := l.file
	f.model = &jobModel{}
	d := &strict.Decoder{Collector: l.problems, Forms: modelForms(), Scalar: l.fixed}
	d.Decode(f.doc.Root, "a job file", reflect.ValueOf(f.model).Elem())
	f.name = f.model.Job
	if at := f.doc.Root.Get("job"); at != nil && at.Kind == strict.Scalar && !at.Empty && (f.name != "" || at.Text == "") && !jobName.MatchString(f.name) {
		l.problems.Add(at, fmt.Sprintf("%q is no name for a job", f.name), "letters, digits, _ - and . are allowed, at most 100, beginning with a letter")
	}
	l.declareTypes(f.model)
	l.declareParameters(f.model)
	f.types, f.env = &l.types, l.env()
	l.checkDefaults()
	l.declareSteps()
	for _, s := range f.steps {
		l.checkStep(s)
	}
	l.checkFlow()
}
