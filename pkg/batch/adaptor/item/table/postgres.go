package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// postgres writes with COPY, or with one statement over an array per column.
// The kind of table decides which of both inserts, never the number of records.
type postgres struct{ zone *time.Location }

func (e *postgres) newBatch() batch { return &postgresBatch{} }

type postgresBatch struct {
	buf     []byte
	arrays  arrays
	lasts   lasts
	records [][]row.Value
	binary  bool // buf is in binary form
}

// oneByOne takes a lock until the transaction ends: two CREATE TABLE IF NOT
// EXISTS of one name at once fail with a unique violation in the catalog.
func (e *postgres) oneByOne(create string) string {
	return "do $surfin$ begin perform pg_advisory_xact_lock(hashtext('surfin: create table')); " + create + "; end $surfin$"
}

func (e *postgres) typeName(kind row.Kind) string {
	if elem, ok := kind.Elem(); ok {
		return e.typeName(elem) + "[]"
	}
	switch kind {
	case row.Int:
		return "bigint"
	case row.Float:
		return "double precision"
	case row.Bool:
		return "boolean"
	case row.DateKind:
		return "date"
	case row.Timestamp:
		return "timestamp with time zone"
	case row.DecimalKind:
		return "numeric"
	case row.JSONKind:
		return "jsonb"
	case row.UUIDKind:
		return "uuid"
	case row.BytesKind:
		return "bytea"
	case row.String, row.Null:
	}
	return "text"
}

func (b *postgresBatch) encode(p *plan, records [][]row.Value) error {
	b.records = records
	if p.config.mode() == modeInsert && p.copies {
		if b.binary = p.copiesBinary(); b.binary {
			var err error
			if b.binary, err = b.encodeBinary(p); b.binary || err != nil {
				return err
			}
		}
		return b.encodeCopy(p)
	}
	if p.config.mode() != modeInsert && p.exactKeys() && p.config.Where == "" {
		b.records = b.lasts.lastRecords(p, records)
		if len(b.records) < len(records) && p.config.mode() != modeDelete {
			return errRepeated // the others must be written too: one may be bad
		}
	}
	return inOrder(b.arrays.encode(p, b.records), records, b.records)
}

func inOrder(err error, all, sent [][]row.Value) error {
	var of *item.RecordError
	if len(all) == len(sent) || !errors.As(err, &of) {
		return err
	}
	for i := range all {
		if &all[i][0] == &sent[of.Index][0] {
			return &item.RecordError{Index: i, Err: of.Err}
		}
	}
	return of.Err
}

func (b *postgresBatch) forget() {
	b.records = nil
	b.lasts.forget()
}

func (b *postgresBatch) send(ctx context.Context, conn tx.Conn, p *plan) error {
	switch {
	case p.config.mode() == modeInsert && p.copies:
		return b.copy(ctx, conn, p)
	}
	repeated, err := b.statement(ctx, conn, p)
	for err == nil && repeated != "" {
		if err = b.keep(repeated); err != nil {
			return err
		}
		if err = b.arrays.encode(p, b.records); err == nil {
			repeated, err = b.statement(ctx, conn, p)
		}
	}
	if p.config.mode() == modeUpsert && dberr.SQLState(err) == "42P10" {
		return fmt.Errorf("%w (an upsert needs a unique index on %s)", err, p.conflict())
	}
	return err
}

// It returns the numbers of the records that it did not write because earlier
// records have their keys.
func (b *postgresBatch) statement(ctx context.Context, conn tx.Conn, p *plan) (repeated string, err error) {
	result, err := b.arrays.exec(ctx, conn, p.arrayStatement())
	switch {
	case err != nil:
	case p.config.mode() == modeUpdate:
		if result.found && p.config.needsRows() {
			err = p.missing(b.records[result.number-1])
		}
	default:
		err = b.checkCount(p, result)
	}
	return result.repeated, err
}

func (b *postgresBatch) keep(numbers string) error {
	var list [][]row.Value
	for number := range strings.SplitSeq(numbers, ",") {
		n, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("the records with a repeated key: %w", err)
		}
		list = append(list, b.records[n-1])
	}
	b.records = list
	return nil
}

// exactKeys reports whether keys equal for PostgreSQL are equal in Go, unlike
// citext or numeric.
func (p *plan) exactKeys() bool {
	for _, i := range p.keys {
		if !p.cols[i].exact || p.cols[i].kind != p.schema.Field(p.fields[i]).Kind {
			return false
		}
	}
	return true
}

func (b *postgresBatch) copy(ctx context.Context, conn tx.Conn, p *plan) error {
	text := fmt.Sprintf("copy %s (%s) from stdin", p.into, p.list())
	return pgxconn.RunFirst(ctx, conn, text, func(c *pgx.Conn, begin pgxconn.Begin) (err error) {
		var took int64
		if b.binary {
			if took, b.binary, err = b.copyBinary(ctx, c, begin, p); err == nil && !b.binary {
				begin, err = nil, b.encodeCopy(p)
			}
		}
		if err == nil && !b.binary {
			took, err = begin.CopyFrom(ctx, c, bytes.NewReader(b.buf), text)
		}
		if err != nil {
			return p.locateCopyError(err, len(b.records))
		}
		return p.tookAll(took, len(b.records))
	})
}

func (b *postgresBatch) encodeCopy(p *plan) error {
	dst := b.buf[:0]
	for n, record := range b.records {
		for i := range p.cols {
			v, err := p.value(record, i)
			if err != nil {
				return &item.RecordError{Index: n, Err: err}
			}
			if i > 0 {
				dst = append(dst, '\t')
			}
			if v.IsNull() {
				dst = append(dst, `\N`...)
			} else if text, ok := sqlvalue.Text(v); ok {
				dst = appendCopyText(dst, text)
			} else {
				dst = sqlvalue.AppendText(dst, v)
			}
		}
		dst = append(dst, '\n')
	}
	b.buf = dst
	return nil
}

func appendCopyText(dst []byte, s string) []byte {
	from := 0
	for i := range len(s) {
		var escaped byte
		switch s[i] {
		case '\\':
			escaped = '\\'
		case '\t':
			escaped = 't'
		case '\n':
			escaped = 'n'
		case '\r':
			escaped = 'r'
		default:
			continue
		}
		dst = append(append(dst, s[from:i]...), '\\', escaped)
		from = i + 1
	}
	return append(dst, s[from:]...)
}

func (b *postgresBatch) checkCount(p *plan, result arraysResult) error {
	switch {
	case p.config.mode() == modeInsert:
		return p.tookAll(result.rows, len(b.records))
	case p.config.mode() != modeUpsert || !p.changesRows():
		return nil
	case p.exactKeys() || p.config.Where != "":
		return p.tookAll(result.rows, len(b.records))
	case result.found:
		return p.tookAll(int64(len(b.records)-result.number), len(b.records))
	}
	return nil
}

// The text does not depend on the number of rows, so it is prepared once per
// connection.
func (p *plan) arrayStatement() string {
	if text, ok := p.texts[0]; ok {
		return text
	}
	table := p.into
	var text string
	switch p.config.mode() {
	case modeInsert, modeTruncate, modeReplace:
		text = fmt.Sprintf("insert into %s (%s) select %s from %s", table, quotedList(p.names()), p.values(), p.source(false))
	case modeUpsert:
		action := p.action()
		text = fmt.Sprintf("insert into %s (%s) select %s from %s on conflict %s do %s",
			table, quotedList(p.names()), p.values(), p.source(false), p.conflict(), action)
		if !p.exactKeys() && p.config.Where == "" {
			text = p.comparedUpsert(action)
		}
	case modeUpdate:
		text = p.updateStatement(table)
	case modeDelete:
		text = fmt.Sprintf("delete from %s as t using %s where %s",
			table, p.source(false), strings.Join(p.pick(p.isKey, "t.{column} = {value}"), " and "))
	}
	p.texts[0] = text
	return text
}

// comparedUpsert upserts the first record of each key that PostgreSQL itself
// distinguishes. It returns how many the table did not take, if it may leave
// rows out, and the numbers of the other records.
func (p *plan) comparedUpsert(action string) string {
	taken, left := "", "0"
	if p.drops && action != "nothing" {
		taken, left = " returning 1", "(select count(*) from s) - (select count(*) from done)"
	}
	return fmt.Sprintf(`with %s, done as (
insert into %s (%s) select %s from s on conflict %s do %s%s)
select %s, %s`,
		p.firsts(), p.into, quotedList(p.names()), p.values(), p.conflict(), action, taken, left, repeatedRecords)
}

func (p *plan) firsts() string {
	keys := p.compared()
	return fmt.Sprintf("a as materialized (select * from %s), s as materialized (select distinct on (%s) * from a as s order by %s, s.ord)", p.source(true), keys, keys)
}

const repeatedRecords = "(select string_agg(a.ord::text, ',' order by a.ord) from a where a.ord not in (select s.ord from s))"

// updateStatement returns the number of one record without a row, if any, and,
// if PostgreSQL compares the keys itself, of the records that are not the first
// of their key.
func (p *plan) updateStatement(table string) string {
	source, repeated := fmt.Sprintf("s as materialized (select * from %s)", p.source(true)), ""
	if !p.exactKeys() {
		source, repeated = p.firsts(), ", "+repeatedRecords
	}
	return fmt.Sprintf(`with %s, done as (update %s as t set %s from s where %s returning s.ord)
select (select min(s.ord) from s where s.ord not in (select done.ord from done))%s`,
		source, table, strings.Join(p.pick(p.isValue, "{column} = {value}"), ", "), strings.Join(p.pick(p.isKey, "t.{column} = {value}"), " and "), repeated)
}

func (p *plan) source(numbered bool) string {
	arrays, names := make([]string, len(p.cols)), make([]string, len(p.cols))
	for i := range p.cols {
		typ := p.cols[i].typ
		if p.cols[i].asText {
			typ = "text"
		}
		arrays[i], names[i] = fmt.Sprintf("$%d::%s[]", i+1, typ), fmt.Sprintf("c%d", i+1)
	}
	if numbered {
		return fmt.Sprintf("unnest(%s) with ordinality as s(%s, ord)", strings.Join(arrays, ", "), strings.Join(names, ", "))
	}
	return fmt.Sprintf("unnest(%s) as s(%s)", strings.Join(arrays, ", "), strings.Join(names, ", "))
}

// pick fills the form for the columns that fit: {value}, {column} (quoted).
func (p *plan) pick(fits func(i int) bool, form string) []string {
	var list []string
	for i, c := range p.cols {
		if !fits(i) {
			continue
		}
		value := fmt.Sprintf("s.c%d", i+1)
		if c.asText {
			value += "::" + c.typ
		}
		text := strings.ReplaceAll(form, "{value}", value)
		list = append(list, strings.ReplaceAll(text, "{column}", quoted(c.name)))
	}
	return list
}

func (p *plan) compared() string {
	list := p.pick(p.isKey, "{value}")
	for n, i := range p.keys {
		if c := p.cols[i].collation; c != "" {
			list[n] += " collate " + c
		}
	}
	return strings.Join(list, ", ")
}

func (p *plan) values() string {
	return strings.Join(p.pick(func(int) bool { return true }, "{value}"), ", ")
}

func (p *plan) isValue(i int) bool { return !p.isKey(i) }

func (p *plan) names() []string {
	names := make([]string, len(p.cols))
	for i := range p.cols {
		names[i] = p.cols[i].name
	}
	return names
}
