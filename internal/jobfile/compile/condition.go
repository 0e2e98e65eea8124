package compile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func compiledCondition(c *tree.Condition, f *tree.File) *model.Condition {
	if c == nil {
		return nil
	}
	return &model.Condition{
		Text: c.Text,
		Holds: func(_ context.Context, view *core.View) (bool, error) {
			holds, err := conditionValues(c, f, view).Compute(c.Prog)
			if err != nil {
				return false, fmt.Errorf("%s: %w", f.Place(c.Node), err)
			}
			return holds == any(true), nil
		},
		Try: func(_ context.Context, view *core.View, unknown model.Unknown) (bool, bool, error) {
			return tryCondition(c, f, view, unknown)
		},
		Values: func(view *core.View) string { return explainCondition(c, f, view) },
	}
}

func isNever(c *tree.Condition) bool {
	if len(c.Prog.Vars()) > 0 || c.Prog.UsesClock() {
		return false
	}
	holds, known, err := c.Prog.Try(nil, func(string) bool { return true })
	return err == nil && known && holds == any(false)
}

func tryCondition(c *tree.Condition, f *tree.File, view *core.View, unknown model.Unknown) (holds, known bool, err error) {
	v := conditionValues(c, f, view)
	if err := v.Environment(c.Prog); err != nil {
		return false, false, fmt.Errorf("%s: %w", f.Place(c.Node), err)
	}
	x, known, err := c.Prog.Try(v.Vars, func(path string) bool {
		switch parts := strings.Split(path, "."); parts[0] {
		case "steps":
			return unknown.Step(parts[1])
		case "context":
			return unknown.Context
		}
		return path == "job.execution" || path == "job.instance" || path == "job.time" && view.Job.Time.IsZero()
	})
	if err != nil {
		return false, false, fmt.Errorf("%s: %w", f.Place(c.Node), err)
	}
	return x == any(true), known, nil
}

func conditionValues(c *tree.Condition, f *tree.File, view *core.View) *bind.Values {
	v := bind.View(f, view)
	if c.OwnNumbers {
		v.AddOwnNumbers(f, view)
	}
	return v
}

func explainCondition(c *tree.Condition, f *tree.File, view *core.View) string {
	v := conditionValues(c, f, view)
	var parts []string
	for _, path := range namesOf(c) {
		var x any = v.Vars
		for _, name := range strings.Split(path, ".") {
			inner, _ := x.(map[string]any)
			x = inner[name]
		}
		text := "null"
		if s, is := x.(string); is {
			text = fmt.Sprintf("%q", s)
		} else if x != nil {
			text = template.Text(x)
		}
		parts = append(parts, path+" = "+text)
	}
	return strings.Join(parts, ", ")
}

func namesOf(c *tree.Condition) []string {
	var names []string
	for _, path := range c.Prog.Vars() {
		names = append(names, path)
		prefix, is := strings.CutSuffix(path, language.BalancedName)
		if !is || prefix != "" && !(strings.HasPrefix(prefix, "steps.") && strings.Count(prefix, ".") == 2) {
			continue
		}
		for _, count := range []string{"read", "read_skipped", "written", "filtered", "skipped"} {
			if !slices.Contains(names, prefix+count) {
				names = append(names, prefix+count)
			}
		}
	}
	return names
}
