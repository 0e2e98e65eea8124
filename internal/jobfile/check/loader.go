package check

import (
	"fmt"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/expand"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Load reads and checks a job file and its child jobs' files. The error is yamlfile.Problems, or
// of package fs.
func Load(from source.Source, reg *registry.Registry) (*tree.File, error) {
	text, err := from.Read()
	if err != nil {
		return nil, fmt.Errorf("job file: %w%s", err, from.Neighbour(err))
	}
	return newLoader(from, text, reg).parse()
}

// Parse checks the text of a source; mistakes in child jobs' files are reported by compiling.
func Parse(from source.Source, text []byte, reg *registry.Registry) (*tree.File, error) {
	l := newLoader(from, text, reg)
	l.lenient = true
	return l.parse()
}

// Earlier is the file as an earlier execution recorded it.
func Earlier(f *tree.File, d core.Definition, reg *registry.Registry) (*tree.File, error) {
	return Parse(f.From.StoredAs(d), []byte(d.Text), reg)
}

type loader struct {
	*scopes
	childFiles *childFiles
}

func newLoader(from source.Source, text []byte, reg *registry.Registry) *loader {
	doc, problems := yamlfile.Parse(from.String(), text)
	if from.IsMade() {
		doc.Describe = language.Describe(from.String())
	}
	file := &tree.File{Doc: doc, From: from, Folder: from.Folder(), Outs: map[string]*row.Schema{}, Now: time.Now}
	if reg != nil {
		file.Places = reg.Names(urlpath.Kind)
	}
	c := &checker{file: file, problems: problems, reg: reg, now: time.Now, parents: []string{from.Identity()}}
	return &loader{scopes: &scopes{checker: c, isStep: map[string]bool{}}, childFiles: &childFiles{files: map[string]*tree.File{}}}
}

func (l *loader) parse() (*tree.File, error) {
	if l.file.Doc.Root != nil {
		l.load()
	}
	var all yamlfile.Problems
	if err := l.problems.Err(); err != nil {
		all = append(all, err.(yamlfile.Problems)...) //nolint:forcetypeassert,errorlint // a collector has nothing else
	}
	if len(l.parents) == 1 && !l.lenient { // the problems of children are reported once, after the file's own
		all = append(all, l.childFiles.problems...)
	}
	if len(all) > 0 {
		return nil, all
	}
	return l.file, nil
}

func (l *loader) load() {
	f := l.file
	var ok bool
	if f.Included, ok = expand.Include(f.Doc, f.From, l.problems); !ok {
		return
	}
	_ = l.readTimezone() //nolint:errcheck // checkTimezone reports it
	l.brokenUses = !expand.Templates(f.Doc, f.Clock, l.problems)
	l.decodeModel()
	l.checkTimezone()
	l.declareCalendars()
	l.declareTypes()
	p := &parameters{l.checker}
	p.declareParameters()
	p.checkIncrementer()
	p.checkInherit()
	(&schedules{p}).checkSchedule()
	f.On = l.on(f.Model.On, true, nil)
	l.checkBudget(f.Model.Budget)
	l.checkExclusive()
	steps := &steps{l.scopes}
	steps.checkDefaults()
	elements := &elements{scopes: l.scopes, byName: map[string]*tree.Element{}, refused: map[string]bool{}}
	elements.declareElements()
	for _, ref := range f.Model.Listeners {
		f.Listeners = append(f.Listeners, l.resolve(registry.KindListener, ref, location{beforeFlow: true}))
	}
	checks := &elementChecks{scopes: l.scopes, steps: steps, children: &children{l.scopes, l.childFiles}}
	checks.checkElements(f.Flow)
	checks.checkElements(f.Finally)
	f.Expect = l.condition(f.Model.Expect, "expect", location{afterFlow: true})
	graph := &graph{elements: elements}
	graph.checkFlow()
	outputs := &outputs{l.checker}
	outputs.checkFiles()
	outputs.checkRefills()
	l.checkNamedSteps()
	l.checkResumable()
	l.checkDivided()
	l.checkRemoteSplits()
	graph.checkStepRefs()
}

func (l *loader) decodeModel() {
	f := l.file
	f.Model = &language.Job{}
	d := &yamlfile.Decoder{Collector: l.problems, Forms: language.Forms(), Scalar: template.Fixed(l.problems), Meant: language.MeantKey}
	d.Decode(f.Doc.Root, "a job file", reflect.ValueOf(f.Model).Elem())
	f.Name = f.Model.Job
	if at := f.Doc.Root.Get("job"); at != nil && at.Kind == yamlfile.Scalar && !at.Empty && (f.Name != "" || at.Text == "") && !language.JobName.MatchString(f.Name) {
		l.problems.Add(at, fmt.Sprintf("%q is not a valid job name", f.Name), "use at most 100 letters, digits, _, - and ., beginning with a letter")
	}
}
