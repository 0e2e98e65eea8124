package step

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// promote stores keys in the job's context before the step's end is recorded: a restart passes a completed
// step (rule D4). A repeat writes them again.
func (a *attempt) promote(ctx context.Context, attr tx.Attr, exit string) error {
	promoting, ok := a.step.(model.Promoting)
	if !ok || promoting.Promote() == nil {
		return nil
	}
	own := a.run.Step.Context
	if own == nil {
		own = core.NewExecutionContext()
	}
	picked := core.NewExecutionContext()
	if err := promoting.Promote().Apply(exit, own, picked); err != nil {
		return err
	}
	if err := a.warnOfMissing(promoting.Promote(), exit, own); err != nil {
		return err
	}
	values := map[string]any{}
	for _, key := range picked.Keys() {
		values[key], _ = picked.Get(key)
	}
	if len(values) == 0 {
		return nil
	}
	where, cancel := a.besides(ctx, attr)
	defer cancel()
	if err := a.whileAwaited(func() error { return a.run.Services.Promoter.Promote(where, values) }); err != nil {
		return err
	}
	a.promoted = values
	return nil
}

const ownKeys = "surfin."

// A misspelt key would go unnoticed (rule D4p).
func (a *attempt) warnOfMissing(p *model.Promotion, exit string, own *core.ExecutionContext) error {
	missing := p.Missing(exit, own)
	if len(missing) == 0 {
		return nil
	}
	has := "which is empty"
	if keys := slices.DeleteFunc(own.Keys(), func(key string) bool { return strings.HasPrefix(key, ownKeys) }); len(keys) > 0 {
		has = "which has: " + strings.Join(keys, ", ")
	}
	a.run.Step.Context = own
	return core.Warn(own, fmt.Sprintf("promote: not found in the context of the step, %s: %s", has, strings.Join(missing, ", ")))
}

// In the step's transaction the job's row commits with it. But heartbeats write the row too, which
// REPEATABLE READ would not bear, and a group would hold it to its end.
func (a *attempt) besides(ctx context.Context, attr tx.Attr) (context.Context, context.CancelFunc) {
	if a.run.Data.Group != nil || attr.Isolation > sql.LevelReadCommitted {
		ctx, _ = tx.Outside(ctx, a.executor.database)
	}
	if _, in := tx.From(ctx, a.executor.database); in {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), recordTime)
}
