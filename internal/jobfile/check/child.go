package check

import (
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type childFiles struct {
	files    map[string]*tree.File // by identity; nil means that the file is wrong
	problems yamlfile.Problems
}

type children struct {
	*scopes
	childFiles *childFiles
}

func (l *children) checkChild(e *tree.Element) {
	l.checkAtLeastOne(e.Model.Job.Node, "start_limit", e.Model.Job.StartLimit)
	if !l.lenient {
		l.checkChildFile(e)
		return
	}
	aside, scopes := *l.checker, *l.scopes
	aside.problems, scopes.checker = l.file.Doc.NewCollector(), &aside
	(&children{&scopes, l.childFiles}).checkChildFile(e)
	l.stepRefs = scopes.stepRefs
	if err := aside.problems.Err(); err != nil {
		e.Step.Child.File = nil
		e.Step.Child.Missing = err.(yamlfile.Problems)[0].Msg //nolint:forcetypeassert,errorlint // a collector has nothing else
	}
}

func (l *children) checkChildFile(e *tree.Element) {
	m, child := e.Model.Job, e.Step.Child
	if at := m.Node.Get("file"); m.File != "" && at != nil {
		child.File = l.loadChild(at, m.File)
	}
	l.checkRemote(e)
	p := location{element: e, step: e.Name}
	var known []core.ParameterSpec
	if child.File != nil {
		known = child.File.Specs
	}
	given := map[string]bool{}
	for _, entry := range m.Parameters {
		given[entry.Name] = true
		if child.File == nil {
			if late := l.parameterTemplate(entry, nil, p); late != nil {
				child.Parameters = append(child.Parameters, tree.ChildParameter{Spec: core.ParameterSpec{Name: entry.Name}, Node: entry.Value.Node, Late: late})
			}
			continue
		}
		i := slices.IndexFunc(known, func(s core.ParameterSpec) bool { return s.Name == entry.Name })
		if i < 0 {
			l.problems.Add(entry.Key, fmt.Sprintf("job %s has no parameter %s", child.File.Name, entry.Name), yamlfile.Suggest(entry.Name, specNames(known)))
			continue
		}
		if known[i].Secret {
			l.problems.Add(entry.Key, fmt.Sprintf("the parameter %s of job %s is secret: parameters of a child job are stored", entry.Name, child.File.Name),
				"leave it out: the child finds it by its name, as it is given here or as the secret "+entry.Name)
			continue
		}
		if late := l.parameterTemplate(entry, &known[i], p); late != nil {
			child.Parameters = append(child.Parameters, tree.ChildParameter{Spec: known[i], Node: entry.Value.Node, Late: late})
		}
	}
	for _, spec := range known {
		if spec.Required && !spec.Secret && spec.Default == nil && !given[spec.Name] {
			l.problems.Add(e.At, fmt.Sprintf("job %s needs the parameter %s", child.File.Name, spec.Name), fmt.Sprintf("its type is %s: parameters: {%s: ...}", spec.Type, spec.Name))
		}
	}
}

func specNames(specs []core.ParameterSpec) []string {
	return language.NamesOf(specs, func(s core.ParameterSpec) string { return s.Name })
}

func (l *children) loadChild(at *yamlfile.Node, name string) *tree.File {
	from, err := l.file.From.Child(name)
	if err != nil {
		l.problems.Add(at, "file: "+err.Error(), "it is relative to this file")
		return nil
	}
	id := from.Identity()
	if circle := source.Circle(l.parents, id); circle != "" {
		l.problems.Add(at, "file: this job would run itself: "+circle, "")
		return nil
	}
	if file, known := l.childFiles.files[id]; known {
		return file
	}
	text, err := from.Read()
	if err != nil {
		l.problems.Add(at, fmt.Sprintf("file: %s cannot be read: %v", from, source.Reason(err)), "it is relative to this file")
		return nil
	}
	inner := newLoader(from, text, l.reg)
	inner.lenient, inner.now = l.lenient, l.now
	inner.parents, inner.childFiles = append(slices.Clone(l.parents), id), l.childFiles
	file, err := inner.parse()
	if err != nil {
		file = nil
		if l.lenient {
			l.problems.Add(at, "file: "+from.String()+" has mistakes: see surfin validate "+from.String(), "")
		}
		l.childFiles.problems = append(l.childFiles.problems, err.(yamlfile.Problems)...) //nolint:forcetypeassert,errorlint // parse returns no other type
	}
	l.childFiles.files[id] = file
	return file
}

func (l *children) parameterTemplate(entry yamlfile.Named[language.RawText], spec *core.ParameterSpec, p location) *template.LateValue {
	n := entry.Value.Node
	if n == nil {
		return nil // reported by the decoder
	}
	t, err := template.Parse(n.Text)
	if err != nil {
		template.Report(l.problems, n, entry.Name, err)
		return nil
	}
	late := &template.LateValue{Template: t}
	if len(t.Holes) == 0 {
		if spec == nil {
			return late
		}
		if x, ok := l.typed(spec, n, t.Literal()); ok {
			if err := job.CheckParameter(*spec, x); err != nil {
				l.problems.Add(n, entry.Name+": "+err.Error(), "")
				return nil
			}
			return late
		}
		return nil
	}
	good, in := true, l.scope(p)
	for i := range t.Holes {
		h := &t.Holes[i]
		if h.Prog, err = template.CompileHole(l.problems, n, *h, in); err != nil {
			good = false
			continue
		}
		late.AtStep = late.AtStep || template.NeedsStep(h.Prog)
		good = l.fitsParameter(entry, n, late, h, spec) && good
	}
	if !good {
		return nil
	}
	return late
}

func (l *children) fitsParameter(entry yamlfile.Named[language.RawText], n *yamlfile.Node, late *template.LateValue, h *template.Hole, spec *core.ParameterSpec) bool {
	optional := late.Whole() && spec != nil && (!spec.Required || spec.Default != nil)
	if h.Prog.Nullable() && !optional && spec != nil {
		l.problems.AddAt(n, h.Offset, fmt.Sprintf("%s: ${%s} may be null", entry.Name, h.Text), "give it a value for that case: "+h.Text+" ?? ...")
		return false
	}
	if spec == nil || !late.Whole() {
		return true
	}
	if spec.Type == core.TypePath {
		l.file.DeclarePath(h.Text)
	}
	want := template.GoType(spec.Type)
	if !template.Fits(h.Prog.Type(), want) {
		l.problems.AddAt(n, h.Offset, fmt.Sprintf("the parameter %s takes %s, and ${%s} is %s", spec.Name, template.TypeName(want), h.Text, template.TypeName(h.Prog.Type())), "")
		return false
	}
	return true
}

func (l *parameters) checkIncrementer() {
	name := l.file.Model.Incrementer
	at := l.file.Doc.Root.Get("incrementer")
	if name == "" || at == nil {
		return
	}
	var countable []string
	for _, spec := range l.file.Specs {
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
	l.problems.Add(at, fmt.Sprintf("incrementer: %s is not a parameter of type int or date", name), hint)
}

func (l *parameters) checkInherit() {
	at := l.file.Doc.Root.Get("inherit")
	if at == nil || len(l.file.Model.Inherit) == 0 {
		return
	}
	if l.file.Model.Incrementer == "" {
		l.problems.Add(at, "inherit: the job makes no next instance", "name its parameter: incrementer: NAME")
		return
	}
	specs := map[string]core.ParameterSpec{}
	for _, spec := range l.file.Specs {
		specs[spec.Name] = spec
	}
	for _, name := range l.file.Model.Inherit {
		spec, declared := specs[name]
		switch {
		case !declared:
			l.problems.Add(at, fmt.Sprintf("inherit: %s is not a parameter of the job", name), yamlfile.Suggest(name, specNames(l.file.Specs)))
		case name == l.file.Model.Incrementer:
			l.problems.Add(at, fmt.Sprintf("inherit: the incrementer makes %s", name), "leave it out")
		case spec.Secret:
			l.problems.Add(at, fmt.Sprintf("inherit: %s is secret, and its value is not stored", name), "leave it out, and give it at each run")
		}
	}
}
