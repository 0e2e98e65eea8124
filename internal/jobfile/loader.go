package jobfile

import (
	"fmt"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// loadSource reads and checks a job file and the files of its child jobs. If one is wrong, the error is
// yamlfile.Problems, all of them; a file that cannot be read is an error of package fs.
func loadSource(from sourceText, reg *registry.Registry) (*fileDef, error) {
	text, err := from.read()
	if err != nil {
		return nil, fmt.Errorf("job file: %w%s", err, from.neighbour(err))
	}
	return newLoader(from, text, reg).parse()
}

// parseSource checks the text of a source. Mistakes in the files of child jobs are reported when the job is
// compiled, which needs them.
func parseSource(from sourceText, text []byte, reg *registry.Registry) (*fileDef, error) {
	l := newLoader(from, text, reg)
	l.lenient = true
	return l.parse()
}

// earlier is the file as an earlier execution recorded it.
func earlier(f *fileDef, d core.Definition, reg *registry.Registry) (*fileDef, error) {
	return parseSource(f.from.asStored(d), []byte(d.Text), reg)
}

// loader loads one file. It runs the checks in the order in which they need each other's results.
type loader struct {
	*scopes
	childFiles *childFiles
}

func newLoader(from sourceText, text []byte, reg *registry.Registry) *loader {
	doc, problems := yamlfile.Parse(from.String(), text)
	if from.isMade() {
		doc.Describe = describe(from.String())
	}
	file := &fileDef{doc: doc, from: from, folder: from.folder(), outs: map[string]*row.Schema{}, now: time.Now}
	c := &checker{file: file, problems: problems, reg: reg, now: time.Now, parents: []string{from.identity()}}
	return &loader{scopes: &scopes{checker: c, isStep: map[string]bool{}}, childFiles: &childFiles{files: map[string]*fileDef{}}}
}

func (l *loader) parse() (*fileDef, error) {
	if l.file.doc.Root != nil {
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
	if f.included, ok = includeFiles(f.doc, f.from, l.problems); !ok {
		return
	}
	_ = l.readTimezone() //nolint:errcheck // checkTimezone reports it
	l.brokenUses = !expandTemplates(f.doc, f.clock, l.problems)
	l.decodeModel()
	l.checkTimezone()
	l.declareCalendars()
	l.declareTypes()
	p := &parameters{l.checker}
	p.declareParameters()
	p.checkIncrementer()
	p.checkInherit()
	(&schedules{p}).checkSchedule()
	f.on = l.on(f.model.On, true, nil)
	l.checkBudget(f.model.Budget)
	l.checkExclusive()
	steps := &steps{l.scopes}
	steps.checkDefaults()
	elements := &elements{scopes: l.scopes, byName: map[string]*elementDef{}, refused: map[string]bool{}}
	elements.declareElements()
	for _, ref := range f.model.Listeners {
		f.listeners = append(f.listeners, l.resolve(registry.KindListener, ref, location{beforeFlow: true}))
	}
	checks := &elementChecks{scopes: l.scopes, steps: steps, children: &children{l.scopes, l.childFiles}}
	checks.checkElements(f.flow)
	checks.checkElements(f.finally)
	f.expect = l.condition(f.model.Expect, "expect", location{afterFlow: true})
	graph := &graph{elements: elements}
	graph.checkFlow()
	outputs := &outputs{l.checker}
	outputs.checkFiles()
	outputs.checkRefills()
	l.checkNamedSteps()
	l.checkResumable()
	l.checkRemoteSplits()
	graph.checkStepRefs()
}

// decodeModel decodes the file, and checks the job's name.
func (l *loader) decodeModel() {
	f := l.file
	f.model = &jobModel{}
	d := &yamlfile.Decoder{Collector: l.problems, Forms: modelDecoders(), Scalar: fixed(l.problems), Meant: meantKey}
	d.Decode(f.doc.Root, "a job file", reflect.ValueOf(f.model).Elem())
	f.name = f.model.Job
	if at := f.doc.Root.Get("job"); at != nil && at.Kind == yamlfile.Scalar && !at.Empty && (f.name != "" || at.Text == "") && !jobName.MatchString(f.name) {
		l.problems.Add(at, fmt.Sprintf("%q is no name for a job", f.name), "letters, digits, _ - and . are allowed, at most 100, beginning with a letter")
	}
}
