package operator

import (
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// declaredTexts are the parameters of a launch as a request has them, without those that
// have their default anyway and those that the framework added.
func declaredTexts(j *core.Job, params core.Parameters) map[string]string {
	texts := map[string]string{}
	for _, spec := range j.Parameters {
		if p, ok := params.Get(spec.Name); ok && p.Value != spec.Default {
			if text, err := p.Canonical(); err == nil { // NewParameters has checked it
				texts[p.Name] = text
			}
		}
	}
	return texts
}

// otherTexts suggests parameters that make another instance: the first identifying one
// with a next value gets it. false: none has one.
func otherTexts(j *core.Job, params core.Parameters) (map[string]string, bool) {
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
		return declaredTexts(j, changed), true
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
		p := core.Parameter{Name: spec.Name, Type: spec.Type, Value: value}
		text, err := p.Canonical()
		if err != nil {
			return nil, false
		}
		for i, allowed := range spec.Enum {
			if allowed == text && len(spec.Enum) > 1 {
				return spec.Enum[(i+1)%len(spec.Enum)], true
			}
		}
		return nil, false
	}
	return next, job.CheckParameter(spec, next) == nil
}
