package batch

import (
	"errors"
	"fmt"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type defined struct {
	fx.In
	Jobs []*Job `group:"surfin.jobs"`
}

// loadJobs checks jobs in Go, all of them, and returns them by name.
func loadJobs(list []*Job, r *registry.Registry) (map[string]*jobfile.File, error) {
	files := map[string]*jobfile.File{}
	var errs []error
	for _, j := range list {
		if _, twice := files[j.Name()]; twice {
			errs = append(errs, fmt.Errorf("there are two jobs named %s", j.Name()))
			continue
		}
		file, err := j.Load(r)
		errs = append(errs, err)
		files[j.Name()] = file
	}
	return files, errors.Join(errs...)
}
