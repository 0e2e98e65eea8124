package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// of is the range that an earlier attempt has fixed, or nil.
func (r *reader) narrow(ctx context.Context, of *sinceRange) error {
	r.since = nil
	if r.config.Since == "" {
		return nil
	}
	column, err := r.sinceColumn()
	if err != nil {
		return err
	}
	if r.since = of; of == nil {
		if r.since, err = r.begin(ctx, column); err != nil {
			return err
		}
	}
	where, err := r.bounds(column)
	if err != nil {
		return err
	}
	if of == nil {
		if r.since.Until, err = r.greatest(ctx, column, where); err != nil {
			return err
		}
		if where, err = r.bounds(column); err != nil {
			return err
		}
	}
	r.args = append(r.args[:len(r.args):len(r.args)], where.args...)
	if where.text != "" {
		r.sql = fmt.Sprintf("select * from (\n%s\n) q where %s", r.sql, where.text)
	}
	return nil
}

func (r *reader) sinceColumn() (*resultColumn, error) {
	if err := r.config.checkSince(r.schema); err != nil {
		return nil, err
	}
	return &r.columns[r.schema.Index(r.config.Since)], nil
}

// after the last complete instance, or at `first`
func (r *reader) begin(ctx context.Context, column *resultColumn) (*sinceRange, error) {
	if r.previous != nil {
		at, err := r.previous(ctx)
		if err != nil {
			return nil, err
		}
		var p position
		if len(at) > 0 {
			if err := json.Unmarshal(at, &p); err != nil {
				return nil, fmt.Errorf("the position of the previous instance is unreadable: %w", err)
			}
		}
		if p.Since != nil && p.Since.Until != nil && p.Since.Until.Name == r.config.Since {
			return r.rangeAfter(*p.Since.Until)
		}
	}
	if r.config.First == "" {
		return &sinceRange{}, r.refuseNullSince(ctx, column)
	}
	v, err := r.firstValue(ctx, column)
	if err != nil {
		return nil, err
	}
	from := stored(r.config.Since, v)
	return &sinceRange{From: &from, With: true}, nil
}

func (r *reader) rangeAfter(last keyValue) (*sinceRange, error) {
	if r.config.Overlap == 0 {
		return &sinceRange{From: &last}, nil
	}
	v, err := last.value()
	if err != nil {
		return nil, err
	}
	if v, err = earlier(v, r.config.Overlap); err != nil {
		return nil, err
	}
	from := stored(r.config.Since, v)
	return &sinceRange{From: &from, With: true}, nil
}

func layoutOf(text string) (layout string, at time.Time) {
	for _, layout := range []string{
		"2006-01-02T15:04:05.000000Z", time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05.000",
		"2006-01-02T15:04:05.000Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05.000000Z07:00", "2006-01-02 15:04:05.000000", "2006-01-02 15:04", time.DateOnly,
	} {
		if at, err := time.Parse(layout, text); err == nil && at.Format(layout) == text {
			return layout, at
		}
	}
	return "", at
}

func earlier(v row.Value, by time.Duration) (row.Value, error) {
	const day = 24 * time.Hour
	days := row.Date((by + day - 1) / day)
	if v.Kind() == row.Timestamp {
		return row.TimestampValue(v.Time().Add(-by)), nil
	}
	if v.Kind() == row.DateKind {
		return row.DateValue(v.Date() - days), nil
	}
	switch layout, at := layoutOf(v.String()); layout {
	case "":
	case time.DateOnly:
		return row.StringValue(at.AddDate(0, 0, -int(days)).Format(layout)), nil
	default:
		return row.StringValue(at.Add(-by).Format(layout)), nil
	}
	return v, fmt.Errorf("%s is not a time from which an overlap can be subtracted", v)
}

// SQLite compares texts: `first` is written there like the greatest value of the column.
func (r *reader) firstValue(ctx context.Context, column *resultColumn) (row.Value, error) {
	f := column.field
	zone := r.config.zone
	if column.oid == pgtype.TimestampOID {
		zone = nil
	}
	v, err := (&row.Field{Name: "first", Kind: f.Kind, Zone: zone, Nulls: []string{}}).Parse(r.config.First)
	if err != nil && f.Kind == row.Timestamp {
		var day row.Value
		if day, err = (&row.Field{Name: "first", Kind: row.DateKind, Nulls: []string{}}).Parse(r.config.First); err == nil {
			v = row.TimestampValue(day.Date().Begins(zone))
		}
	}
	if err != nil || r.db.Dialect() != tx.SQLite || f.Kind != row.Timestamp {
		return v, err
	}
	last, err := r.greatest(ctx, column, where{})
	if err != nil || last == nil {
		return v, err
	}
	if layout, _ := layoutOf(last.Value); layout != "" {
		at := v.Time()
		if zone != nil && !strings.HasSuffix(layout, "Z") && !strings.Contains(layout, "07") {
			at = at.In(zone)
		}
		return row.StringValue(at.Format(layout)), nil
	}
	return v, fmt.Errorf("%q does not have a format that `first` can be compared with", last.Value)
}

type where struct {
	text string
	args []any
}

func (r *reader) bounds(column *resultColumn) (w where, err error) {
	var conditions []string
	add := func(operator string, k *keyValue) error {
		if k == nil {
			return nil
		}
		if k.Name != r.config.Since {
			return fmt.Errorf("the earlier attempts read by column %s: start again with --from-start", k.Name)
		}
		v, err := k.value()
		if err != nil {
			return err
		}
		w.args = append(w.args, r.engine.bind(v))
		conditions = append(conditions, fmt.Sprintf("q.%s %s %s", column.source(), operator, column.variable(r.db.Dialect(), len(r.args)+len(w.args))))
		return nil
	}
	from := ">"
	if r.since.With {
		from = ">="
	}
	err = errors.Join(add(from, r.since.From), add("<=", r.since.Until))
	w.text = strings.Join(conditions, " and ")
	return w, err
}

func (r *reader) greatest(ctx context.Context, column *resultColumn, w where) (*keyValue, error) {
	name := "q." + column.source()
	if w.text == "" {
		w.text = name + " is not null"
	}
	text := fmt.Sprintf("select %s from (\n%s\n) q where %s order by %s desc limit 1", r.engine.output(column), r.sql, w.text, name)
	p, err := r.engine.fetch(ctx, r.conn(), []resultColumn{*column}, text, append(r.args[:len(r.args):len(r.args)], w.args...))
	if err != nil || p.len() == 0 {
		return nil, r.explain(text, err)
	}
	v, err := p.raw(0, 0)
	if err != nil {
		return nil, err
	}
	until := stored(r.config.Since, v)
	return &until, nil
}

// Rows with a null would never be read.
func (r *reader) refuseNullSince(ctx context.Context, column *resultColumn) error {
	var found bool
	text := fmt.Sprintf("select exists (select 1 from (\n%s\n) q where q.%s is null)", r.sql, column.source())
	if err := r.conn().QueryRowContext(ctx, text, r.args...).Scan(&found); err != nil {
		return fmt.Errorf("look for a null: %w", r.explain(text, err))
	}
	if found {
		return errors.New("it is null in some rows, which no instance would read: exclude them, or give them a value with coalesce")
	}
	return nil
}
