package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CheckPaths refuses path parameters of a client that lead out of the folders that it may name (rule
// SE3), each as a *core.ParameterError. ctx holds the files of the execution.
func CheckPaths(ctx context.Context, j *model.Job, params core.Parameters) error {
	files := confine.From(ctx)
	var errs []error
	for _, p := range params.All() {
		text, is := p.Value.(string)
		if !is || p.Type != core.TypePath || !j.Confinement.Holds(p.Name) {
			continue
		}
		if err := files.Check(cmp.Or(p.Path, text)); err != nil {
			errs = append(errs, &core.ParameterError{Name: p.Name, Err: err})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("job %s: %w", j.Name, err)
	}
	return nil
}
