package compile

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// childParameters computes the parameters of a child job. A null one is not given: it has its default.
func childParameters(f *tree.File, child *tree.Child, view *core.View) (core.Parameters, error) {
	given := map[string]string{}
	v := bind.View(f, view)
	for _, p := range child.Parameters {
		value, ok, err := bind.ChildValue(f, v, p)
		if err != nil {
			return core.Parameters{}, fmt.Errorf("%s: parameter %s: %w", f.Place(p.Node), p.Spec.Name, err)
		}
		if ok {
			given[p.Spec.Name] = value
		}
	}
	return job.ValidateParameters(child.File.Specs, given)
}

func bindChild(f *tree.File, child *tree.Child, params core.Parameters, problems *yamlfile.Collector) {
	v := bind.Launch(f, params)
	for _, p := range child.Parameters {
		if p.Late.AtStep || child.File == nil {
			continue
		}
		text, given, err := bind.ChildValue(f, v, p)
		if err == nil && given {
			var x any
			if x, err = p.Spec.Parse(text); err == nil {
				err = job.CheckParameter(p.Spec, x)
			}
		}
		if err != nil {
			problems.Add(p.Node, p.Spec.Name+": "+err.Error(), "")
		}
	}
}

// increment makes the next instance; nil if the file has none.
func increment(f *tree.File) model.Incrementer {
	for _, spec := range f.Specs {
		if spec.Name != f.Model.Incrementer {
			continue
		}
		if spec.Type == core.TypeDate {
			return job.NextDay(spec.Name)
		}
		return job.Count(spec.Name)
	}
	return nil
}

// childConfinement returns the confinement of a child job: its parameters are confined if a value of the
// client took part in them.
func childConfinement(ctx context.Context, f *tree.File, child *tree.Child, view *core.View) *core.Confinement {
	own := view.Job.Confinement
	if own == nil {
		return nil
	}
	v := bind.View(f, view).Confined(ctx, own, nil)
	var given []string
	for _, p := range child.Parameters {
		if v.Held(p.Late.Holes) {
			given = append(given, p.Spec.Name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	return &core.Confinement{Roots: own.Roots, Data: own.Data, Given: given}
}
