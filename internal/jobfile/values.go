package jobfile

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
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// values are the inputs of ${...} at launch, or at the start of a step. They belong to one pass.
type values struct {
	vars   map[string]any
	paths  []string // names of parameters of type path
	atStep bool
	ran    map[string]core.StepExecution
	// secrets are the names of the secret parameters.
	secrets []string
	// files are the files that the execution is confined to; nil means not confined. partHeld means that a
	// value of the client took part in the partitions.
	files    *confine.Files
	partHeld bool
	// secret finds a secret; nil means that the values are shown, and a secret is masked.
	secret func(name string) (string, error)
}

// launchValues are the values known before an execution exists.
func (f *fileDef) launchValues(params core.Parameters) *values {
	v := &values{vars: map[string]any{
		"params": map[string]any{},
		"job":    map[string]any{"name": f.name},
		"env":    map[string]any{},
		"secret": map[string]any{},
	}}
	named := v.vars["params"].(map[string]any)
	for _, spec := range f.specs {
		named[spec.Name] = nil
		if spec.Secret {
			v.secrets = append(v.secrets, spec.Name)
		}
		p, ok := params.Get(spec.Name)
		if !ok {
			continue
		}
		named[spec.Name] = p.Value
		if text, is := p.Value.(string); is && spec.Type == core.TypePath {
			v.paths = append(v.paths, "params."+spec.Name)
			if named[spec.Name] = cmp.Or(p.Path, f.absolute(text)); text == core.StdPath {
				named[spec.Name] = text
			}
		}
	}
	return v
}

// viewValues are the values known when a step starts, or a condition is evaluated.
func (f *fileDef) viewValues(view *core.View) *values {
	v := f.launchValues(view.Job.Params)
	v.atStep = true
	job := v.vars["job"].(map[string]any)
	job["execution"], job["instance"], job["time"] = int64(view.Job.ID), int64(view.Job.InstanceID), view.Job.Time.UTC()
	if o := view.Outcome; o != nil {
		job["status"], job["exit"], job["error"], job["failed_step"] = string(o.Status), o.ExitCode, o.Message, o.Step
	}
	steps := map[string]any{}
	for _, s := range f.steps {
		// A step that has not run has no numbers, but its status can be queried.
		steps[s.name] = map[string]any{"status": "", "exit": ""}
	}
	for name, s := range view.Steps {
		fields := f.stepFields(name, s)
		fields["status"] = string(s.Status)
		steps[name] = fields
	}
	v.vars["steps"], v.ran = steps, view.Steps
	v.vars["context"] = contextTexts(view.Job.Context)
	if view.Part != nil {
		v.addPart(view.Part)
	}
	return v
}

// withoutRowData replaces the message of the outcome, which may quote a row, by the command that shows it
// (rule OP7).
func (v *values) withoutRowData(view *core.View) *values {
	o := view.Outcome
	if o.Message == "" {
		return v
	}
	what := "the job"
	if o.Step != "" {
		what = "step " + o.Step
	}
	v.vars["job"].(map[string]any)["error"] = fmt.Sprintf("%s ended %s (%s); surfin show %d has the message", what, o.Status, o.ExitCode, view.Job.ID)
	return v
}

// addOwnNumbers adds the numbers of the view's own step, without a prefix.
func (v *values) addOwnNumbers(f *fileDef, view *core.View) {
	if view.Step == nil {
		return
	}
	name, _, _ := strings.Cut(view.Step.Name, ":") // a partition uses its step's
	for key, x := range f.stepFields(name, *view.Step) {
		v.vars[key] = x
	}
	if view.Step.ExitCode == "" { // it is about to be this
		v.vars["exit"] = core.ExitCompleted
	}
}

// stepFields are the numbers of a step over all attempts that continued one another.
func (f *fileDef) stepFields(name string, s core.StepExecution) map[string]any {
	c := s.Total()
	ended := s.EndedAt
	if ended.IsZero() && !s.StartedAt.IsZero() {
		ended = time.Now() // its own gate: it has not ended yet
	}
	return map[string]any{
		"read": c.Read, "filtered": c.Filter, "written": c.Write, "skipped": c.Skips(),
		"read_skipped": c.ReadSkip, "process_skipped": c.ProcessSkip, "write_skipped": c.WriteSkip,
		"commits": c.Commit, "rollbacks": c.Rollback, balancedName: c.Balanced(),
		"duration": max(ended.Sub(s.StartedAt), 0), "exit": s.ExitCode,
		"out": f.outValues(name, s.Out),
	}
}

// contextTexts are the values of the job's context, as texts.
func contextTexts(c *core.ExecutionContext) map[string]any {
	texts := map[string]any{}
	if c == nil {
		return texts
	}
	for _, key := range c.Keys() {
		if x, ok := c.Get(key); ok {
			texts[key] = textOf(x)
		}
	}
	return texts
}

// addPart adds the values of ${part.NAME}. A text of the partitioner may be a path, relative to the working
// directory.
func (v *values) addPart(p *core.Partition) {
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
	v.vars["part"] = fields
}

// outValues gives the results of a step the types that outVar declared: in the database an int becomes a JSON
// number, a date a text.
func (f *fileDef) outValues(step string, out map[string]any) map[string]any {
	schema := f.outs[step]
	values := map[string]any{}
	for name, x := range out {
		if x == nil {
			continue
		}
		values[name] = textOf(x)
		if schema == nil {
			continue
		}
		i := schema.Index(name)
		if i < 0 {
			continue
		}
		field := row.Field{Name: name, Kind: schema.Field(i).Kind, Nullable: schema.Field(i).Nullable}
		if field.Kind == row.Timestamp {
			field.Zone = f.clock.zone
		}
		if parsed, err := field.Parse(textOf(x)); err == nil {
			values[name] = parsed.Any()
		} // else the text stays, and the expression that uses it reports the mistake
	}
	return values
}

// env is the environment of expressions over items.
func (v *values) env(types registry.ExpressionEnv) registry.ExpressionEnv {
	types.Values = map[string]map[string]any{
		"params": v.vars["params"].(map[string]any),
		"job":    v.vars["job"].(map[string]any),
	}
	if part, ok := v.vars["part"].(map[string]any); ok {
		types.Values["part"] = part
	}
	return types
}

// eval evaluates one ${...}.
func (v *values) eval(h hole) (any, error) {
	if err := v.environment(h.prog); err != nil {
		return nil, err
	}
	x, err := v.compute(h.prog)
	if err != nil {
		return nil, fmt.Errorf("${%s}: %w", h.text, err)
	}
	return x, nil
}

// environment adds the environment variables and the secrets that an expression uses.
func (v *values) environment(prog *expression.Program) error {
	for _, path := range prog.Vars() {
		if name, is := strings.CutPrefix(path, "secret."); is {
			if err := v.addSecret("secret", name); err != nil {
				return err
			}
		}
		if name, is := strings.CutPrefix(path, "params."); is && slices.Contains(v.secrets, name) {
			if err := v.addSecret("params", name); err != nil {
				return err
			}
		}
		if name, is := strings.CutPrefix(path, "env."); is {
			text, ok := os.LookupEnv(name)
			if !ok {
				return fmt.Errorf("the environment variable %s is not set", name)
			}
			v.vars["env"].(map[string]any)[name] = text
		}
	}
	return nil
}

// compute evaluates an expression.
func (v *values) compute(prog *expression.Program) (any, error) {
	if err := v.environment(prog); err != nil {
		return nil, err
	}
	x, err := prog.Eval(v.vars)
	if err == nil {
		return x, nil
	}
	if step, missing := v.notRun(prog); missing {
		return nil, fmt.Errorf("step %s has not run, so that it has no numbers; steps.%s.status == '' asks for that", step, step)
	}
	return nil, err
}

// notRun returns the first step that a decision or a condition skipped although a program needs its numbers.
func (v *values) notRun(prog *expression.Program) (string, bool) {
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

// render evaluates a text: a single ${...} keeps its type. In a path, resolved means that the text begins
// with an already resolved parameter.
func (v *values) render(late *lateValue, path bool) (value yamlfile.Value, resolved bool, err error) {
	resolved = path && v.resolved(late)
	if late.whole() {
		x, err := v.eval(late.holes[0])
		if err == nil && x == nil {
			err = fmt.Errorf("${%s} is null", late.holes[0].text)
		}
		return yamlfile.Value{Typed: x}, resolved, err
	}
	var b strings.Builder
	for i, text := range late.texts {
		b.WriteString(text)
		if i == len(late.holes) {
			break
		}
		x, err := v.eval(late.holes[i])
		if err != nil {
			return yamlfile.Value{}, false, err
		}
		if x == nil {
			return yamlfile.Value{}, false, fmt.Errorf("${%s} is null", late.holes[i].text)
		}
		b.WriteString(textOf(x))
	}
	return yamlfile.Value{Text: b.String()}, resolved, nil
}

func (v *values) resolved(late *lateValue) bool {
	return late.texts[0] == "" && len(late.holes) > 0 &&
		slices.ContainsFunc(late.holes[0].prog.Vars(), func(used string) bool { return slices.Contains(v.paths, used) })
}

// textOf is the text of a value in a file: the text form of parameters, if it has one.
func textOf(x any) string {
	for _, t := range core.ParameterTypes() {
		if text, err := (core.Parameter{Type: t, Value: x}).Canonical(); err == nil {
			return text
		}
	}
	if n, ok := x.(json.Number); ok {
		return n.String()
	}
	if t, ok := x.(time.Time); ok {
		return t.UTC().Format(row.TimestampLayout)
	}
	return fmt.Sprint(x)
}
