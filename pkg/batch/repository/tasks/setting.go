package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// settings implements taskports.Settings.
type settings struct{ *store }

func (r settings) Settings(ctx context.Context) ([]taskports.Setting, error) {
	var rows []struct {
		Name, Value, UpdatedBy string
		UpdatedAt              gormtx.Instant
	}
	if err := r.scan(ctx, &rows, "SELECT name, value, updated_by, updated_at FROM {setting}"); err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	list := taskports.DefaultSettings()
	for _, row := range rows {
		i := slices.IndexFunc(list, func(s taskports.Setting) bool { return s.Name == row.Name })
		if i >= 0 { // else another version of the program wrote it
			list[i].Value, list[i].Default, list[i].UpdatedBy, list[i].UpdatedAt = row.Value, false, row.UpdatedBy, timeOf(row.UpdatedAt)
		}
	}
	return list, nil
}

func (r settings) Set(ctx context.Context, name, value, actor string) (core.Answer, error) {
	if err := taskports.CheckSetting(name, value); err != nil {
		return core.Rejected, err
	}
	answer := core.Duplicate
	err := r.transact(ctx, func(ctx context.Context) error {
		list, err := r.Settings(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(s taskports.Setting) bool { return s.Name == name && s.Value == value }) {
			return nil
		}
		changed, err := r.exec(ctx, "INSERT INTO {setting} (name, value, updated_at, updated_by) VALUES (?, ?, {now}, ?) ON CONFLICT (name) DO NOTHING", name, value, actor)
		if err == nil && changed == 0 { // neither if another process has just set the same
			changed, err = r.exec(ctx, "UPDATE {setting} SET value = ?, updated_at = {now}, updated_by = ? WHERE name = ? AND value <> ?", value, actor, name, value)
		}
		if err != nil || changed == 0 {
			return err
		}
		answer = core.Applied
		return r.note(ctx, "set", actor, name+" = "+value)
	})
	if err != nil {
		return core.Rejected, fmt.Errorf("set %s: %w", name, err)
	}
	return answer, nil
}

// notes implements taskports.Notes.
type notes struct{ *store }

func (r notes) Note(ctx context.Context, verb, actor, detail string) error {
	return r.note(ctx, verb, actor, detail)
}
