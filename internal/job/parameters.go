package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// ValidateParameters types the given texts, with defaults (rule D2). A relative
// path begins at its spec's folder (rule L1a). Secret parameters are excluded.
// The error joins *core.ParameterErrors, sorted by name.
func ValidateParameters(specs []core.ParameterSpec, given map[string]string) (core.Parameters, error) {
	var list []core.Parameter
	var errs []error
	known := map[string]bool{}
	for _, spec := range slices.SortedFunc(slices.Values(specs), func(a, b core.ParameterSpec) int { return strings.Compare(a.Name, b.Name) }) {
		known[spec.Name] = true
		if spec.Secret { // a secret is not a value of the launch
			continue
		}
		text, ok := given[spec.Name]
		value, err := valueOf(spec, text, ok)
		if err == nil && value != nil {
			var p core.Parameter
			p, err = spec.Place(value)
			if p.Former = spec.FormerDefault; ok {
				p.Former = spec.Former(text, value)
			}
			list = append(list, p)
		}
		if err != nil {
			errs = append(errs, &ports.ParameterError{Name: spec.Name, Err: err})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			errs = append(errs, &ports.ParameterError{Name: name, Err: unknown(name, specs)})
		}
	}
	if len(errs) > 0 {
		return core.Parameters{}, errors.Join(errs...)
	}
	return core.NewParameters(list...)
}

func valueOf(spec core.ParameterSpec, text string, given bool) (any, error) {
	if !given {
		if spec.Default == nil && spec.Required {
			return nil, fmt.Errorf("it is required (type %s)", spec.Type)
		}
		return spec.Default, nil
	}
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return nil, errors.New("it contains a NUL byte or invalid UTF-8, which no database accepts")
	}
	value, err := spec.Parse(text)
	if err != nil {
		return nil, err
	}
	return value, CheckParameter(spec, value)
}

// CheckParameter reports a value against pattern, enum, min or max; it has the
// Go type of spec.Type.
func CheckParameter(spec core.ParameterSpec, value any) error {
	text, err := core.Parameter{Name: spec.Name, Type: spec.Type, Value: value}.Canonical()
	if err != nil {
		return err
	}
	allowed := func(choice string) bool { return choice == text }
	if spec.Type == core.TypePath { // its spelling does not matter
		if text, err = core.PathText(spec.Folder, text); err != nil {
			return err
		}
		allowed = func(choice string) bool {
			short, err := core.PathText(spec.Folder, choice)
			return err == nil && short == text
		}
	}
	if len(spec.Enum) > 0 && !slices.ContainsFunc(spec.Enum, allowed) {
		return fmt.Errorf("%q is not allowed (allowed: %s)", text, strings.Join(spec.Enum, ", "))
	}
	if spec.Pattern != "" {
		re, err := regexp.Compile("^(?:" + spec.Pattern + ")$")
		if err != nil {
			return fmt.Errorf("its pattern: %w", err)
		}
		if !re.MatchString(text) {
			return fmt.Errorf("%q does not match %s", text, spec.Pattern)
		}
	}
	if spec.Min != nil && compare(value, spec.Min) < 0 {
		return fmt.Errorf("%s is less than %v", text, spec.Min)
	}
	if spec.Max != nil && compare(value, spec.Max) > 0 {
		return fmt.Errorf("%s is more than %v", text, spec.Max)
	}
	return nil
}

func compare(a, b any) int {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
	case float64:
		if b, ok := b.(float64); ok {
			return cmp.Compare(a, b)
		}
	case row.Decimal:
		if b, ok := b.(row.Decimal); ok {
			return a.Cmp(b)
		}
	case core.Date:
		if b, ok := b.(core.Date); ok {
			return cmp.Compare(a, b)
		}
	case time.Duration:
		if b, ok := b.(time.Duration); ok {
			return cmp.Compare(a, b)
		}
	case time.Time:
		if b, ok := b.(time.Time); ok {
			return a.Compare(b)
		}
	}
	return 0
}

func unknown(name string, specs []core.ParameterSpec) error {
	if len(specs) == 0 {
		return fmt.Errorf("the job has no parameters")
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	slices.Sort(names)
	return fmt.Errorf("the job has no such parameter (it has: %s)", strings.Join(names, ", "))
}

// CheckPaths refuses a client's paths outside of its folders (rule SE3), each
// as a *ports.ParameterError. ctx holds the execution's files.
func CheckPaths(ctx context.Context, j *model.Job, params core.Parameters) error {
	files := confine.From(ctx)
	var errs []error
	for _, p := range params.All() {
		text, is := p.Value.(string)
		if !is || p.Type != core.TypePath || !j.Confinement.Holds(p.Name) {
			continue
		}
		if err := files.Check(cmp.Or(p.Path, text)); err != nil {
			errs = append(errs, &ports.ParameterError{Name: p.Name, Err: err})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("job %s: %w", j.Name, err)
	}
	return nil
}
