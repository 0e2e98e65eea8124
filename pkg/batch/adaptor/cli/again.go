package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// declaredWords writes the parameters of a launch as they are given, without
// those that have their default anyway and the number of a repetition.
func declaredWords(j *core.Job, params core.Parameters) []string {
	var words []string
	for _, spec := range j.Parameters {
		if p, ok := params.Get(spec.Name); ok && p.Value != spec.Default {
			words = append(words, canonicalWord(p))
		}
	}
	return words
}

// otherParameter suggests parameters that make another instance: the first
// identifying one that can be moved by one step.
func otherParameter(j *core.Job, params core.Parameters) ([]string, bool) {
	for _, spec := range j.Parameters {
		p, ok := params.Get(spec.Name)
		if !ok || !spec.Identifying {
			continue
		}
		next, ok := nextValue(spec, p.Value)
		if !ok {
			continue
		}
		var list []core.Parameter
		for _, other := range params.All() {
			if other.Name == spec.Name {
				other.Value = next
			}
			list = append(list, other)
		}
		changed, err := core.NewParameters(list...)
		if err != nil {
			return nil, false
		}
		return declaredWords(j, changed), true
	}
	return nil, false
}

// nextValue is the value after this one that the declaration allows.
func nextValue(spec core.ParameterSpec, value any) (any, bool) {
	var next any
	switch v := value.(type) {
	case int64:
		next = v + 1
	case core.Date:
		next = v + 1
	case time.Time:
		next = v.Add(24 * time.Hour)
	default:
		for i, text := range spec.Enum {
			if text == specText(spec, value) && len(spec.Enum) > 1 {
				return spec.Enum[(i+1)%len(spec.Enum)], true
			}
		}
		return nil, false
	}
	return next, job.CheckParameter(spec, next) == nil
}

// canonicalWord is name=value, not quoted.
func canonicalWord(p core.Parameter) string {
	text, err := p.Canonical()
	if err != nil {
		text = fmt.Sprint(p.Value) // cannot be: NewParameters has checked it
	}
	return p.Name + "=" + text
}

func idText(id core.JobExecutionID) string { return strconv.FormatInt(int64(id), 10) }
