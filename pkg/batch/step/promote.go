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

// promote copies keys of the step's context to the job's and stores them, before the step's end is
// recorded: a restart passes a completed step, and would not find them otherwise (rule D4). Values that
// a failure leaves in the job's context are written again when the step is repeated.
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

// ownKeys is the prefix of the framework's keys.
const ownKeys = "surfin."

// warnOfMissing warns of keys that are not promoted, since the step's context has no value for them
// (rule D4p). Later elements find no value, and a misspelt key would go unnoticed.
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

// besides returns the context in which the job's row is written. In the step's transaction it commits
// with the step. But heartbeats also write the row, and a transaction of REPEATABLE READ or above would
// not bear that; and a group would hold it until it ends.
func (a *attempt) besides(ctx context.Context, attr tx.Attr) (context.Context, context.CancelFunc) {
	if a.run.Data.Group != nil || attr.Isolation > sql.LevelReadCommitted {
		ctx, _ = tx.Outside(ctx, a.database)
	}
	if _, in := tx.From(ctx, a.database); in {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), recordTime)
}
