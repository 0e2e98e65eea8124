package jobfile

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// values are what ${...} evaluates over: at launch, or at the start of a step.
// They belong to one pass.
type values struct {
	vars   map[string]any
	paths  []string // names of parameters of type path
	atStep bool
}

// launchValues are those that are known before an execution exists.
func (f *File) launchValues(params core.Parameters) *values {
	v := &values{vars: map[string]any{
		"params": map[string]any{},
		"job":    map[string]any{"name": f.name},
		"env":    map[string]any{},
	}}
	named := v.vars["params"].(map[string]any)
	for _, spec := range f.specs {
		named[spec.Name] = nil
		p, ok := params.Get(spec.Name)
		if !ok {
			continue
		}
		named[spec.Name] = p.Value
		if spec.Type != core.TypePath {
			continue
		}
		v.paths = append(v.paths, "params."+spec.Name)
		if text, ok := p.Value.(string); ok && text == spec.Default {
			named[spec.Name] = f.resolve(text)
		}
	}
	return v
}

// stepValues are those that are known when a step starts.
func (f *File) stepValues(run *core.StepRun) *values {
	v := f.launchValues(run.Job.Params)
	v.atStep = true
	v.vars["job"].(map[string]any)["execution"] = int64(run.Job.ID)
	steps := map[string]any{}
	for name, s := range run.Steps {
		c := s.Counters
		fields := map[string]any{
			"read": c.Read, "filtered": c.Filter, "written": c.Write, "skipped": c.Skips(),
			"read_skipped": c.ReadSkip, "process_skipped": c.ProcessSkip, "write_skipped": c.WriteSkip,
			"commits": c.Commit, "rollbacks": c.Rollback,
			"duration": s.EndedAt.Sub(s.StartedAt), "status": string(s.Status), "exit": s.ExitCode,
			"out": f.outValues(name, s.Out),
		}
		steps[name] = fields
	}
	v.vars["steps"] = steps
	return v
}

// outValues gives the results of a step the types that outVar declared: through
// the database an int becomes a JSON number, a date a text.
func (f *File) outValues(step string, out map[string]any) map[string]any {
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
		if parsed, err := field.Parse(textOf(x)); err == nil {
			values[name] = parsed.Any()
		} // otherwise the text stays, and the expression that uses it says what it is
	}
	return values
}

// env is the environment of expressions over items.
func (v *values) env(types core.ExpressionEnv) core.ExpressionEnv {
	types.Values = map[string]map[string]any{
		"params": v.vars["params"].(map[string]any),
		"job":    v.vars["job"].(map[string]any),
	}
	return types
}

// eval evaluates one ${...}.
func (v *values) eval(h hole) (any, error) {
	for _, path := range h.prog.Vars() {
		head, name, _ := strings.Cut(path, ".")
		switch head {
		case "env":
			text, ok := os.LookupEnv(name)
			if !ok {
				return nil, fmt.Errorf("the environment variable %s is not set", name)
			}
			v.vars["env"].(map[string]any)[name] = text
		case "steps":
			step, _, _ := strings.Cut(name, ".")
			if _, ran := v.vars["steps"].(map[string]any)[step]; !ran {
				return nil, fmt.Errorf("${%s}: step %s has not run", h.text, step)
			}
		}
	}
	x, err := h.prog.Eval(v.vars)
	if err != nil {
		return nil, fmt.Errorf("${%s}: %w", h.text, err)
	}
	return x, nil
}

// render evaluates a text: a single ${...} keeps its type. In a path, resolved
// says that the text begins with a parameter that was resolved already.
func (v *values) render(late *lateValue, path bool) (value strict.Value, resolved bool, err error) {
	if path && late.texts[0] == "" && len(late.holes) > 0 {
		resolved = slices.ContainsFunc(late.holes[0].prog.Vars(), func(used string) bool { return slices.Contains(v.paths, used) })
	}
	if late.whole() {
		x, err := v.eval(late.holes[0])
		if err == nil && x == nil {
			err = fmt.Errorf("${%s} is null", late.holes[0].text)
		}
		return strict.Value{Typed: x}, resolved, err
	}
	var b strings.Builder
	for i, text := range late.texts {
		b.WriteString(text)
		if i == len(late.holes) {
			break
		}
		x, err := v.eval(late.holes[i])
		if err != nil {
			return strict.Value{}, false, err
		}
		if x == nil {
			return strict.Value{}, false, fmt.Errorf("${%s} is null", late.holes[i].text)
		}
		b.WriteString(textOf(x))
	}
	return strict.Value{Text: b.String()}, resolved, nil
}

// textOf is the text form of a value in a file: that of parameters, where it has
// one.
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
