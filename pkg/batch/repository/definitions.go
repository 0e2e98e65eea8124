package repository

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The acts of audit rows about definitions, which name no execution.
const (
	actRegister   = "register"
	actUnregister = "unregister"
	actEnable     = "enable"
	actDisable    = "disable"
	actLeaveOut   = "leave out"
)

type jobDefinition struct {
	ID              int64 `gorm:"primaryKey"`
	Name            string
	Version         string
	DefinitionText  string
	DefinitionPath  string
	DefinitionFiles string
	Schedule        string
	Budget          string
	Enabled         bool
	ScheduledUntil  instant
	CreatedAt       instant
	UpdatedAt       instant
	UpdatedBy       string
}

// definitions implements taskports.Definitions.
type definitions struct{ store *store }

// Register implements taskports.Definitions: one transaction, which locks the row.
func (r *definitions) Register(ctx context.Context, d taskports.Definition, actor string) (taskports.Registration, error) {
	row, err := definitionRow(d)
	if err != nil {
		return taskports.Registration{}, fmt.Errorf("register job %s: %w", d.Name, err)
	}
	row.UpdatedBy = actor
	for tries := 1; ; tries++ {
		var before *jobDefinition
		changed := false
		err := r.store.transact(ctx, func(ctx context.Context) (err error) {
			if before, err = r.lockDefinition(ctx, d.Name); err != nil {
				return err
			}
			if changed = before == nil || !before.isSame(row); !changed {
				return nil
			}
			if err := r.storeDefinition(ctx, before, row); err != nil {
				return err
			}
			detail := d.Name + " " + row.Version
			if before != nil && timesOf(before.Schedule) != timesOf(row.Schedule) {
				detail += ports.OtherTimes
			}
			return r.store.auditDefinition(ctx, actRegister, actor, d.Name, detail)
		})
		if dberr.IsUniqueViolation(err) && tries < maxTries {
			continue // another process registered the name concurrently
		}
		if err != nil {
			return taskports.Registration{}, fmt.Errorf("register job %s: %w", d.Name, err)
		}
		made := taskports.Registration{Changed: changed}
		if before != nil {
			made.Before = before.Version
		}
		made.Definition, err = r.Definition(ctx, d.Name)
		return made, err
	}
}

func (r *definitions) lockDefinition(ctx context.Context, name string) (*jobDefinition, error) {
	var rows []jobDefinition
	err := gormtx.Find(r.store.session(ctx).Where("name = ?", name).Clauses(clause.Locking{Strength: "UPDATE"}), &rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// storeDefinition writes the row. A schedule with other times is decided from now on.
func (r *definitions) storeDefinition(ctx context.Context, before, row *jobDefinition) error {
	if before == nil {
		made := *row
		made.Enabled, made.ScheduledUntil, made.CreatedAt, made.UpdatedAt = true, clock(0), clock(0), clock(0)
		return r.store.session(ctx).Create(&made).Error
	}
	until := "scheduled_until"
	if was, is := timesOf(before.Schedule), timesOf(row.Schedule); was != is {
		until = "{now}"
	}
	return r.store.exec(ctx, `UPDATE {job_definition} SET version = ?, definition_text = ?, definition_path = ?, definition_files = ?,
		schedule = ?, budget = ?, scheduled_until = `+until+`, updated_at = {now}, updated_by = ? WHERE id = ?`,
		row.Version, row.DefinitionText, row.DefinitionPath, row.DefinitionFiles, row.Schedule, row.Budget, row.UpdatedBy, before.ID).Error
}

// timesOf returns the part of a stored schedule that determines when it is due.
func timesOf(schedule string) string {
	var s taskports.Schedule
	if schedule == "" || json.Unmarshal([]byte(schedule), &s) != nil {
		return schedule
	}
	times, err := json.Marshal(taskports.Schedule{Cron: s.Cron, Timezone: s.Timezone, Calendar: s.Calendar, WhenClosed: s.WhenClosed})
	if err != nil { // plain data has a JSON form
		return schedule
	}
	return string(times)
}

func (d *jobDefinition) isSame(row *jobDefinition) bool {
	return d.Version == row.Version && d.DefinitionPath == row.DefinitionPath && d.DefinitionFiles == row.DefinitionFiles &&
		d.Schedule == row.Schedule && d.Budget == row.Budget
}

// Definition implements taskports.Definitions: one statement.
func (r *definitions) Definition(ctx context.Context, name string) (taskports.Definition, error) {
	var rows []jobDefinition
	if err := gormtx.Find(r.store.session(ctx).Where("name = ?", name), &rows); err != nil {
		return taskports.Definition{}, fmt.Errorf("read the definition of job %s: %w", name, err)
	}
	if len(rows) == 0 {
		return noDefinition(name)
	}
	return rows[0].record()
}

func noDefinition(name string) (taskports.Definition, error) {
	return taskports.Definition{}, fmt.Errorf("definition of job %s: %w", name, core.ErrNotFound)
}

// Lock implements taskports.Definitions. SQLite has one writer.
func (r *definitions) Lock(ctx context.Context, name string) (taskports.Definition, error) {
	row, err := r.lockDefinition(ctx, name)
	switch {
	case err != nil:
		return taskports.Definition{}, fmt.Errorf("lock the definition of job %s: %w", name, err)
	case row == nil:
		return noDefinition(name)
	}
	return row.record()
}

// NoteRun implements taskports.Definitions.
func (r *definitions) NoteRun(ctx context.Context, name, actor, detail string) error {
	return r.store.auditDefinition(ctx, ports.VerbRun, actor, name, storable(detail))
}

// Definitions implements taskports.Definitions: one statement.
func (r *definitions) Definitions(ctx context.Context, filter taskports.DefinitionFilter) ([]taskports.Definition, error) {
	query := r.store.session(ctx).Omit("definition_text", "definition_files").Order("name")
	if filter.Scheduled {
		query = query.Where("enabled AND schedule <> ''")
	}
	var rows []jobDefinition
	if err := gormtx.Find(query, &rows); err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	list := make([]taskports.Definition, 0, len(rows))
	for i := range rows {
		d, err := rows[i].record()
		d.Unreadable = err
		list = append(list, d)
	}
	return list, nil
}

// EnableDefinition implements taskports.Definitions: one guarded UPDATE and its audit row.
func (r *definitions) EnableDefinition(ctx context.Context, name string, enabled bool, actor string) (taskports.Definition, bool, error) {
	act, until := actDisable, "scheduled_until"
	if enabled { // times that were due while it was disabled do not count as missed
		act, until = actEnable, "{now}"
	}
	changed := false
	err := r.store.transact(ctx, func(ctx context.Context) error {
		done := r.store.exec(ctx, "UPDATE {job_definition} SET enabled = ?, scheduled_until = "+until+", updated_at = {now}, updated_by = ? WHERE name = ? AND enabled = ?",
			enabled, actor, name, !enabled)
		if changed = done.RowsAffected > 0; done.Error != nil || !changed {
			return done.Error
		}
		return r.store.auditDefinition(ctx, act, actor, name, name)
	})
	if err != nil {
		return taskports.Definition{}, false, fmt.Errorf("%s the schedule of job %s: %w", act, name, err)
	}
	d, err := r.Definition(ctx, name)
	return d, changed, err
}

// Unregister implements taskports.Definitions: one DELETE and its audit row.
func (r *definitions) Unregister(ctx context.Context, name, actor string) error {
	err := r.store.transact(ctx, func(ctx context.Context) error {
		done := r.store.exec(ctx, "DELETE FROM {job_definition} WHERE name = ?", name)
		if done.Error != nil {
			return done.Error
		}
		if done.RowsAffected == 0 {
			return core.ErrNotFound
		}
		return r.store.auditDefinition(ctx, actUnregister, actor, name, name)
	})
	if err != nil {
		return fmt.Errorf("unregister job %s: %w", name, err)
	}
	return nil
}

// Advance implements taskports.Definitions: one guarded UPDATE, and its audit row.
func (r *definitions) Advance(ctx context.Context, d taskports.Definition, until time.Time, note string) (bool, error) {
	done := r.store.exec(ctx, "UPDATE {job_definition} SET scheduled_until = ? WHERE id = ? AND enabled AND version = ? AND scheduled_until = ?",
		instant{Time: until}, d.ID, d.Files.Hash, instant{Time: d.ScheduledUntil})
	if done.Error != nil {
		return false, fmt.Errorf("advance the schedule of job %s: %w", d.Name, done.Error)
	}
	if done.RowsAffected > 0 && note != "" {
		return true, r.store.auditDefinition(ctx, actLeaveOut, "scheduler", d.Name, d.Name+": "+note)
	}
	return done.RowsAffected > 0, nil
}

// Now implements taskports.Definitions.
func (r *definitions) Now(ctx context.Context) (time.Time, error) {
	var rows []struct{ At instant }
	if err := r.store.scan(ctx, &rows, "SELECT {now} AS at"); err != nil {
		return time.Time{}, fmt.Errorf("read the clock of the database: %w", err)
	}
	return rows[0].At.Time, nil
}

func (s *store) auditDefinition(ctx context.Context, act, actor, job, detail string) error {
	return s.session(ctx).Create(&audit{At: clock(0), Act: act, Actor: actor, Detail: detail, Verb: act, Person: actor, JobName: job}).Error
}

func definitionRow(d taskports.Definition) (*jobDefinition, error) {
	files, err := encodeFiles(d.Files.Files)
	if err != nil {
		return nil, err
	}
	schedule := ""
	if d.Schedule != nil {
		text, err := json.Marshal(d.Schedule)
		if err != nil {
			return nil, err
		}
		schedule = string(text)
	}
	budget, err := json.Marshal(d.Budget)
	if err != nil {
		return nil, err
	}
	return &jobDefinition{
		Name: d.Name, Version: d.Files.Hash, DefinitionText: d.Files.Text, DefinitionPath: d.Files.Path, DefinitionFiles: files,
		Schedule: schedule, Budget: string(budget),
	}, nil
}

func (d *jobDefinition) record() (taskports.Definition, error) {
	made := taskports.Definition{
		ID: d.ID, Name: d.Name, Enabled: d.Enabled, ScheduledUntil: d.ScheduledUntil.Time,
		CreatedAt: d.CreatedAt.Time, UpdatedAt: d.UpdatedAt.Time, UpdatedBy: d.UpdatedBy,
	}
	files, err := decodeFiles(d.DefinitionFiles)
	if d.Schedule != "" {
		made.Schedule = &taskports.Schedule{}
		err = errors.Join(err, json.Unmarshal([]byte(d.Schedule), made.Schedule))
	}
	err = errors.Join(err, json.Unmarshal([]byte(d.Budget), &made.Budget))
	made.Files = core.Definition{Hash: d.Version, Text: d.DefinitionText, Path: d.DefinitionPath, Files: files}
	if err != nil {
		return made, fmt.Errorf("definition of job %s: %w: %w", d.Name, ports.ErrUnreadable, err)
	}
	return made, nil
}
