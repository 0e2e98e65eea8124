package jobfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// childDef is a job as an element of another one.
type childDef struct {
	model *childModel
	// file is nil if it could not be used: see Parse. missing is the reason.
	file       *File
	missing    string
	parameters []childParameter
	on         *core.Placement // nil means any worker
}

// childParameter is the value that the file gives to one of the child's parameters.
type childParameter struct {
	spec core.ParameterSpec
	node *yamlfile.Node
	late *lateValue
}

// childFiles are the files of child jobs, at any depth, that one Load has read.
type childFiles struct {
	files    map[string]*File // by identity; nil means that the file is wrong
	problems Problems
}

// checkChild loads the file of a child job and checks its parameters. If the text is parsed on its own,
// mistakes in that file are reported when the job is compiled.
func (l *loader) checkChild(e *elementDef) {
	l.checkAtLeastOne(e.model.job.Node, "start_limit", e.model.job.StartLimit)
	if !l.lenient {
		l.checkChildFile(e)
		return
	}
	aside := *l
	aside.problems = l.file.doc.NewCollector()
	aside.checkChildFile(e)
	l.stepRefs = aside.stepRefs
	if err := aside.problems.Err(); err != nil {
		e.step.child.file = nil
		e.step.child.missing = err.(Problems)[0].Msg //nolint:forcetypeassert,errorlint // a collector has nothing else
	}
}

func (l *loader) checkChildFile(e *elementDef) {
	m, child := e.model.job, e.step.child
	if at := m.Node.Get("file"); m.File != "" && at != nil {
		child.file = l.loadChild(at, m.File)
	}
	l.checkRemote(e)
	p := location{element: e, step: e.name}
	var known []core.ParameterSpec
	if child.file != nil {
		known = child.file.specs
	}
	given := map[string]bool{}
	for _, entry := range m.Parameters {
		given[entry.Name] = true
		if child.file == nil {
			if late := l.parameterTemplate(entry, nil, p); late != nil {
				child.parameters = append(child.parameters, childParameter{spec: core.ParameterSpec{Name: entry.Name}, node: entry.Value.node, late: late})
			}
			continue
		}
		i := slices.IndexFunc(known, func(s core.ParameterSpec) bool { return s.Name == entry.Name })
		if i < 0 {
			l.problems.Add(entry.Key, fmt.Sprintf("job %s has no parameter %s", child.file.name, entry.Name), yamlfile.Suggest(entry.Name, specNames(known)))
			continue
		}
		if known[i].Secret {
			l.problems.Add(entry.Key, fmt.Sprintf("the parameter %s of job %s is secret: parameters of a child job are stored", entry.Name, child.file.name),
				"leave it out: the child finds it by its name, as it is given here or as the secret "+entry.Name)
			continue
		}
		if late := l.parameterTemplate(entry, &known[i], p); late != nil {
			child.parameters = append(child.parameters, childParameter{spec: known[i], node: entry.Value.node, late: late})
		}
	}
	for _, spec := range known {
		if spec.Required && !spec.Secret && spec.Default == nil && !given[spec.Name] {
			l.problems.Add(e.at, fmt.Sprintf("job %s needs the parameter %s", child.file.name, spec.Name), fmt.Sprintf("its type is %s: parameters: {%s: ...}", spec.Type, spec.Name))
		}
	}
}

func specNames(specs []core.ParameterSpec) []string {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	return names
}

// loadChild reads the file of a child job, once for all uses; nil if it cannot be used.
func (l *loader) loadChild(at *yamlfile.Node, name string) *File {
	from, err := l.file.from.child(name)
	if err != nil {
		l.problems.Add(at, "file: "+err.Error(), "it is relative to this file")
		return nil
	}
	id := from.identity()
	if slices.Contains(l.parents, id) {
		var names []string
		for _, file := range append(slices.Clone(l.parents[slices.Index(l.parents, id):]), id) {
			names = append(names, filepath.Base(file))
		}
		l.problems.Add(at, "file: this job would run itself: "+strings.Join(names, " -> "), "")
		return nil
	}
	if file, known := l.childFiles.files[id]; known {
		return file
	}
	text, err := from.read()
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		l.problems.Add(at, fmt.Sprintf("file: %s cannot be read: %v", from, err), "it is relative to this file")
		return nil
	}
	inner := newLoader(from, text, l.reg)
	inner.lenient = l.lenient
	inner.parents, inner.childFiles, inner.now = append(slices.Clone(l.parents), id), l.childFiles, l.now
	file, err := inner.parse()
	if err != nil {
		file = nil
		if l.lenient {
			l.problems.Add(at, "file: "+from.String()+" is wrong: see surfin validate "+from.String(), "")
		}
		l.childFiles.problems = append(l.childFiles.problems, err.(Problems)...) //nolint:forcetypeassert,errorlint // parse returns no other type
	}
	l.childFiles.files[id] = file
	return file
}

// parameterTemplate checks the value given for a parameter of a child; nil if it is wrong. spec is nil if it
// is unknown.
func (l *loader) parameterTemplate(entry yamlfile.Named[rawText], spec *core.ParameterSpec, p location) *lateValue {
	n := entry.Value.node
	if n == nil {
		return nil // reported by the decoder
	}
	t, err := parseTemplate(n.Text)
	if err != nil {
		reportTemplate(l.problems, n, entry.Name, err)
		return nil
	}
	late := &lateValue{template: t}
	if len(t.holes) == 0 {
		if spec == nil {
			return late
		}
		if x, ok := l.typed(spec, n, t.literal()); ok {
			if err := job.CheckParameter(*spec, x); err != nil {
				l.problems.Add(n, entry.Name+": "+err.Error(), "")
				return nil
			}
			return late
		}
		return nil
	}
	good, in := true, l.scope(p)
	for i := range t.holes {
		h := &t.holes[i]
		if h.prog, err = compileHole(l.problems, n, *h, in); err != nil {
			good = false
			continue
		}
		late.atStep = late.atStep || needsStep(h.prog)
		good = l.fitsParameter(entry, n, late, h, spec) && good
	}
	if !good {
		return nil
	}
	return late
}

// fitsParameter checks the type of one ${...} in the value of a parameter.
func (l *loader) fitsParameter(entry yamlfile.Named[rawText], n *yamlfile.Node, late *lateValue, h *hole, spec *core.ParameterSpec) bool {
	optional := late.whole() && spec != nil && (!spec.Required || spec.Default != nil)
	if h.prog.Nullable() && !optional && spec != nil {
		l.problems.AddAt(n, h.offset, fmt.Sprintf("%s: ${%s} may be null", entry.Name, h.text), "give it a value for that case: "+h.text+" ?? ...")
		return false
	}
	if spec == nil || !late.whole() {
		return true
	}
	if spec.Type == core.TypePath {
		l.file.declarePath(h.text)
	}
	want := parameterGoType(spec.Type)
	if !fits(h.prog.Type(), want) {
		l.problems.AddAt(n, h.offset, fmt.Sprintf("the parameter %s takes %s, and ${%s} is %s", spec.Name, typeName(want), h.text, typeName(h.prog.Type())), "")
		return false
	}
	return true
}

// childParameters computes the parameters of a child job. A null one is not given: it has its default.
func (f *File) childParameters(child *childDef, view *core.View) (core.Parameters, error) {
	given := map[string]string{}
	v := f.viewValues(view)
	for _, p := range child.parameters {
		value, ok, err := f.childValue(v, p)
		if err != nil {
			return core.Parameters{}, fmt.Errorf("%s: parameter %s: %w", f.location(p.node), p.spec.Name, err)
		}
		if ok {
			given[p.spec.Name] = value
		}
	}
	return job.ValidateParameters(child.file.specs, given)
}

// bindChild checks the parameters of a child that are known at launch.
func (f *File) bindChild(child *childDef, params core.Parameters, problems *yamlfile.Collector) {
	v := f.launchValues(params)
	for _, p := range child.parameters {
		if p.late.atStep || child.file == nil {
			continue
		}
		text, given, err := f.childValue(v, p)
		if err == nil && given {
			var x any
			if x, err = p.spec.Parse(text); err == nil {
				err = job.CheckParameter(p.spec, x)
			}
		}
		if err != nil {
			problems.Add(p.node, p.spec.Name+": "+err.Error(), "")
		}
	}
}

func (f *File) childValue(v *values, p childParameter) (text string, given bool, err error) {
	path, resolved := p.spec.Type == core.TypePath, false
	switch {
	case len(p.late.holes) == 0:
		text = p.late.literal()
	case p.late.whole():
		x, err := v.eval(p.late.holes[0])
		if err != nil || x == nil {
			return "", false, err
		}
		text = textOf(x)
		resolved = v.resolved(p.late)
	default:
		value, done, err := v.render(p.late, path)
		if err != nil {
			return "", false, err
		}
		text, resolved = value.Text, done
	}
	if path && !resolved {
		text = f.absolute(text)
	}
	return text, true, nil
}

// checkIncrementer checks that the incrementer is a parameter that can be incremented.
func (l *loader) checkIncrementer() {
	name := l.file.model.Incrementer
	at := l.file.doc.Root.Get("incrementer")
	if name == "" || at == nil {
		return
	}
	var countable []string
	for _, spec := range l.file.specs {
		if spec.Type == core.TypeInt || spec.Type == core.TypeDate {
			countable = append(countable, spec.Name)
		}
		if spec.Name == name && !spec.Identifying {
			l.problems.Add(at, fmt.Sprintf("incrementer: the parameter %s is not identifying", name), "with another value of it the instance would be the same")
		}
	}
	if slices.Contains(countable, name) {
		return
	}
	hint := yamlfile.Suggest(name, countable)
	if len(countable) == 0 {
		hint = "the job has no such parameter; declare one: run: {type: int, default: 1}"
	}
	l.problems.Add(at, fmt.Sprintf("incrementer: %s is no parameter of type int or date", name), hint)
}

// checkInherit checks that inherited names are parameters that an execution keeps, of a job that makes a next
// instance.
func (l *loader) checkInherit() {
	at := l.file.doc.Root.Get("inherit")
	if at == nil || len(l.file.model.Inherit) == 0 {
		return
	}
	if l.file.model.Incrementer == "" {
		l.problems.Add(at, "inherit: the job makes no next instance", "name its parameter: incrementer: NAME")
		return
	}
	specs := map[string]core.ParameterSpec{}
	var names []string
	for _, spec := range l.file.specs {
		specs[spec.Name] = spec
		names = append(names, spec.Name)
	}
	for _, name := range l.file.model.Inherit {
		spec, declared := specs[name]
		switch {
		case !declared:
			l.problems.Add(at, fmt.Sprintf("inherit: %s is not a parameter of the job", name), yamlfile.Suggest(name, names))
		case name == l.file.model.Incrementer:
			l.problems.Add(at, fmt.Sprintf("inherit: the incrementer makes %s", name), "leave it out")
		case spec.Secret:
			l.problems.Add(at, fmt.Sprintf("inherit: %s is secret, and its value is not stored", name), "leave it out, and give it at each run")
		}
	}
}

// Incrementer returns the name of the parameter that makes the next instance, or "".
func (f *File) Incrementer() string { return f.model.Incrementer }

// increment makes the next instance; nil if the file has none.
func (f *File) increment() model.Incrementer {
	for _, spec := range f.specs {
		if spec.Name != f.model.Incrementer {
			continue
		}
		if spec.Type == core.TypeDate {
			return job.NextDay(spec.Name)
		}
		return job.Count(spec.Name)
	}
	return nil
}
