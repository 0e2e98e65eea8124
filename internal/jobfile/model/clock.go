package model

import (
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (f *File) KeepComputed(spec core.ParameterSpec, t *template.Template) {
	for _, h := range t.Holes {
		if h.Prog.UsesClock() {
			f.clockDefaults = append(f.clockDefaults, clockDefault{spec.Name, t})
			return
		}
	}
}

// ParametersNow are the specs with the defaults of now.
func (f *File) ParametersNow() []core.ParameterSpec { return f.ParametersAt(f.Now()) }

// ParametersAt are the specs with the defaults at a time. A default that does not fit its type at that time
// keeps its value from the load.
func (f *File) ParametersAt(now time.Time) []core.ParameterSpec {
	specs := slices.Clone(f.Specs)
	for _, d := range f.clockDefaults {
		text, _, err := d.template.Evaluate(f.Clock.Values(now))
		if err != nil {
			continue
		}
		i := slices.IndexFunc(specs, func(s core.ParameterSpec) bool { return s.Name == d.parameter })
		if x, err := specs[i].Parse(text); err == nil {
			specs[i].Default, specs[i].FormerDefault = x, specs[i].Former(text, x)
		}
	}
	return specs
}
