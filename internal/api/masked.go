package api

import (
	"context"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// A viewer sees less of a task's payload (rule SE6).
func shown(ctx context.Context, spec runtime.SpecForm) runtime.SpecForm {
	if access.CallerOf(ctx).Role == settings.Operator {
		return spec
	}
	return runtime.ForViewers(spec)
}
