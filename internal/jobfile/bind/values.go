package bind

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Values are the inputs of ${...} for one pass.
type Values struct {
	Vars     map[string]any
	paths    []string // names of parameters of type path
	AtStep   bool
	ran      map[string]core.StepExecution
	Secrets  []string
	files    *confine.Files
	partHeld bool
	// Secret finds a secret; nil masks it.
	Secret func(name string) (string, error)
}

// Launch are the values known before an execution exists.
func Launch(f *tree.File, params core.Parameters) *Values {
	v := &Values{Vars: map[string]any{
		"params": map[string]any{},
		"job":    map[string]any{"name": f.Name},
		"env":    map[string]any{},
		"secret": map[string]any{},
	}}
	named := v.Vars["params"].(map[string]any)
	for _, spec := range f.Specs {
		named[spec.Name] = nil
		if spec.Secret {
			v.Secrets = append(v.Secrets, spec.Name)
		}
		p, ok := params.Get(spec.Name)
		if !ok {
			continue
		}
		named[spec.Name] = p.Value
		if text, is := p.Value.(string); is && spec.Type == core.TypePath {
			v.paths = append(v.paths, "params."+spec.Name)
			if named[spec.Name] = cmp.Or(p.Path, f.Absolute(text)); text == core.StdPath {
				named[spec.Name] = text
			}
		}
	}
	return v
}

// View are the values known when a step starts, or a condition is evaluated.
func View(f *tree.File, view *core.View) *Values {
	v := Launch(f, view.Job.Params)
	v.AtStep = true
	job := v.Vars["job"].(map[string]any)
	job["execution"], job["instance"], job["time"] = int64(view.Job.ID), int64(view.Job.InstanceID), view.Job.Time.UTC()
	if o := view.Outcome; o != nil {
		job["status"], job["exit"], job["error"], job["failed_step"] = string(o.Status), o.ExitCode, o.Message, o.Step
	}
	steps := map[string]any{}
	for _, s := range f.Steps {
		steps[s.Name] = map[string]any{"status": "", "exit": ""}
	}
	for name, s := range view.Steps {
		fields := numbersOf(f, name, s)
		fields["status"] = string(s.Status)
		steps[name] = fields
	}
	v.Vars["steps"], v.ran = steps, view.Steps
	v.Vars["context"] = contextTexts(view.Job.Context)
	if view.Part != nil {
		v.addPart(view.Part)
	}
	return v
}

// WithoutRowData replaces the message of the outcome, which may quote a row (rule OP7).
func (v *Values) WithoutRowData(view *core.View) *Values {
	o := view.Outcome
	if o.Message == "" {
		return v
	}
	what := "the job"
	if o.Step != "" {
		what = "step " + o.Step
	}
	v.Vars["job"].(map[string]any)["error"] = fmt.Sprintf("%s ended %s (%s); surfin show %d has the message", what, o.Status, o.ExitCode, view.Job.ID)
	return v
}

// AddOwnNumbers adds the numbers of the view's own step.
func (v *Values) AddOwnNumbers(f *tree.File, view *core.View) {
	if view.Step == nil {
		return
	}
	name, _, _ := strings.Cut(view.Step.Name, ":") // a partition uses its step's
	for key, x := range numbersOf(f, name, *view.Step) {
		v.Vars[key] = x
	}
	if view.Step.ExitCode == "" { // it is about to be this
		v.Vars["exit"] = core.ExitCompleted
	}
}

func numbersOf(f *tree.File, name string, s core.StepExecution) map[string]any {
	c := s.Total()
	ended := s.EndedAt
	if ended.IsZero() && !s.StartedAt.IsZero() {
		ended = time.Now() // its own gate: it has not ended yet
	}
	return map[string]any{
		"read": c.Read, "filtered": c.Filter, "written": c.Write, "skipped": c.Skips(),
		"read_skipped": c.ReadSkip, "process_skipped": c.ProcessSkip, "write_skipped": c.WriteSkip,
		"commits": c.Commit, "rollbacks": c.Rollback, language.BalancedName: c.Balanced(),
		"duration": max(ended.Sub(s.StartedAt), 0), "exit": s.ExitCode,
		"out": outValues(f, name, s.Out),
	}
}

func contextTexts(c *core.ExecutionContext) map[string]any {
	texts := map[string]any{}
	if c == nil {
		return texts
	}
	for _, key := range c.Keys() {
		if x, ok := c.Get(key); ok {
			texts[key] = template.Text(x)
		}
	}
	return texts
}

func (v *Values) addPart(p *core.Partition) {
	fields := map[string]any{}
	if p.Context != nil {
		for _, key := range p.Context.Keys() {
			if x, ok := p.Context.Get(key); ok {
				fields[key] = x
				v.paths = append(v.paths, "part."+key)
			}
		}
	}
	fields["name"], fields["index"] = p.Name, int64(p.Index)
	v.Vars["part"] = fields
}

// outValues restores the declared types: in the database an int is a JSON number, a date a text.
func outValues(f *tree.File, step string, out map[string]any) map[string]any {
	schema := f.Outs[step]
	values := map[string]any{}
	for name, x := range out {
		if x == nil {
			continue
		}
		values[name] = template.Text(x)
		if schema == nil {
			continue
		}
		i := schema.Index(name)
		if i < 0 {
			continue
		}
		field := row.Field{Name: name, Kind: schema.Field(i).Kind, Nullable: schema.Field(i).Nullable}
		if field.Kind == row.Timestamp {
			field.Zone = f.Clock.Zone
		}
		if parsed, err := field.Parse(template.Text(x)); err == nil {
			values[name] = parsed.Any()
		} // else the text stays, and the expression that uses it reports the mistake
	}
	return values
}

func (v *Values) env(types registry.ExpressionEnv) registry.ExpressionEnv {
	types.Values = map[string]map[string]any{
		"params": v.Vars["params"].(map[string]any),
		"job":    v.Vars["job"].(map[string]any),
	}
	if part, ok := v.Vars["part"].(map[string]any); ok {
		types.Values["part"] = part
	}
	return types
}

// Eval evaluates one ${...}.
func (v *Values) Eval(h template.Hole) (any, error) {
	if err := v.Environment(h.Prog); err != nil {
		return nil, err
	}
	x, err := v.Compute(h.Prog)
	if err != nil {
		return nil, fmt.Errorf("${%s}: %w", h.Text, err)
	}
	return x, nil
}

// Environment adds the environment variables and the secrets that an expression uses.
func (v *Values) Environment(prog *expression.Program) error {
	for _, path := range prog.Vars() {
		head, name, dotted := strings.Cut(path, ".")
		if dotted && (head == "secret" || head == "params" && slices.Contains(v.Secrets, name)) {
			if err := v.addSecret(head, name); err != nil {
				return err
			}
		}
		if dotted && head == "env" {
			text, ok := os.LookupEnv(name)
			if !ok {
				return fmt.Errorf("the environment variable %s is not set", name)
			}
			v.Vars["env"].(map[string]any)[name] = text
		}
	}
	return nil
}

// Compute evaluates an expression.
func (v *Values) Compute(prog *expression.Program) (any, error) {
	if err := v.Environment(prog); err != nil {
		return nil, err
	}
	x, err := prog.Eval(v.Vars)
	if err == nil {
		return x, nil
	}
	if step, missing := v.notRun(prog); missing {
		return nil, fmt.Errorf("step %s has not run, so it has no numbers; test for that with steps.%s.status == ''", step, step)
	}
	return nil, err
}

func (v *Values) notRun(prog *expression.Program) (string, bool) {
	for _, path := range prog.Vars() {
		parts := strings.Split(path, ".")
		if parts[0] != "steps" || len(parts) < 3 || parts[2] == "status" || parts[2] == "exit" {
			continue
		}
		if _, ran := v.ran[parts[1]]; !ran {
			return parts[1], true
		}
	}
	return "", false
}

func (v *Values) render(late *template.LateValue, path bool) (value yamlfile.Value, resolved bool, err error) {
	resolved = path && v.resolved(late)
	if late.Whole() {
		x, err := v.Eval(late.Holes[0])
		if err == nil && x == nil {
			err = fmt.Errorf("${%s} is null", late.Holes[0].Text)
		}
		return yamlfile.Value{Typed: x}, resolved, err
	}
	var b strings.Builder
	for i, text := range late.Texts {
		b.WriteString(text)
		if i == len(late.Holes) {
			break
		}
		x, err := v.Eval(late.Holes[i])
		if err != nil {
			return yamlfile.Value{}, false, err
		}
		if x == nil {
			return yamlfile.Value{}, false, fmt.Errorf("${%s} is null", late.Holes[i].Text)
		}
		b.WriteString(template.Text(x))
	}
	return yamlfile.Value{Text: b.String()}, resolved, nil
}

func (v *Values) resolved(late *template.LateValue) bool {
	return late.Texts[0] == "" && len(late.Holes) > 0 &&
		slices.ContainsFunc(late.Holes[0].Prog.Vars(), func(used string) bool { return slices.Contains(v.paths, used) })
}

// ChildValue is the text that the file gives to a parameter of a child job.
func ChildValue(f *tree.File, v *Values, p tree.ChildParameter) (text string, given bool, err error) {
	path, resolved := p.Spec.Type == core.TypePath, false
	switch {
	case len(p.Late.Holes) == 0:
		text = p.Late.Literal()
	case p.Late.Whole():
		x, err := v.Eval(p.Late.Holes[0])
		if err != nil || x == nil {
			return "", false, err
		}
		text = template.Text(x)
		resolved = v.resolved(p.Late)
	default:
		value, done, err := v.render(p.Late, path)
		if err != nil {
			return "", false, err
		}
		text, resolved = value.Text, done
	}
	if path && !resolved {
		text = f.Absolute(text)
	}
	return text, true, nil
}

// JsonTree makes a value for encoding/json of a tree; scalar returns the values of its scalars.
func JsonTree(n *yamlfile.Node, scalar func(n *yamlfile.Node) (any, error)) (any, error) {
	switch n.Kind {
	case yamlfile.List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			value, err := JsonTree(item, scalar)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case yamlfile.Map:
		object := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			value, err := JsonTree(e.Value, scalar)
			if err != nil {
				return nil, err
			}
			object[e.Key.Text] = value
		}
		return object, nil
	case yamlfile.Scalar:
	}
	return scalar(n)
}

// PayloadScalar is a number, a bool or null if written like one of JSON; a text that is one ${...}
// keeps its type.
func PayloadScalar(v *Values, n *yamlfile.Node, late *template.LateValue) (any, error) {
	switch {
	case late == nil: // reported
		return n.Text, nil
	case n.Empty:
		return nil, nil
	case len(late.Holes) == 0 && !n.IsQuoted() && json.Valid([]byte(n.Text)):
		return json.RawMessage(n.Text), nil
	case len(late.Holes) == 0:
		return late.Literal(), nil
	case !late.Whole():
		value, _, err := v.render(late, false)
		return value.Text, err
	}
	x, err := v.Eval(late.Holes[0])
	switch x.(type) {
	case nil, bool, int64, float64, string:
		return x, err
	}
	return template.Text(x), err
}
