package table

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// shape is the structure of a PostgreSQL type: each part of a text obeys the
// rules of its own type (rule D8a). A domain has its base's shape.
type shape struct {
	scalar column
	elem   *shape
	delim  byte
	fields []*shape
}

const shapeQuery = `
with recursive base(oid, modifier, depth) as (
  select $1::text::oid, $2::text::int, 0
  union all
  select d.typbasetype, d.typtypmod, depth + 1 from base join pg_catalog.pg_type d on d.oid = base.oid and d.typtype = 'd'
), b as (select oid, modifier from base order by depth desc limit 1)
select b.oid::bigint, b.modifier, coalesce(e.oid, 0)::bigint, coalesce(e.typdelim, ',')::text, coalesce(a.atttypid, 0)::bigint, coalesce(a.atttypmod, -1)
from b join pg_catalog.pg_type t on t.oid = b.oid
left join pg_catalog.pg_type e on e.oid = t.typelem and e.typarray = t.oid
left join pg_catalog.pg_attribute a on t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
order by a.attnum`

type shapePart struct {
	oid      uint32
	modifier int
}

func shapeOf(ctx context.Context, conn tx.Conn, oid uint32, modifier int, zone *time.Location) (*shape, error) {
	s := &shape{}
	elem, fields, err := s.readCatalog(ctx, conn, oid, &modifier)
	if err != nil {
		return nil, fmt.Errorf("look up type %d: %w", oid, err)
	}
	s.scalar.setZone(zone)
	if elem != 0 {
		s.elem, err = shapeOf(ctx, conn, elem, modifier, zone)
		return s, err
	}
	for _, f := range fields {
		field, err := shapeOf(ctx, conn, f.oid, f.modifier, zone)
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, field)
	}
	return s, nil
}

func (s *shape) readCatalog(ctx context.Context, conn tx.Conn, oid uint32, modifier *int) (elem uint32, fields []shapePart, err error) {
	rows, err := conn.QueryContext(ctx, shapeQuery, fmt.Sprint(oid), fmt.Sprint(*modifier))
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var base int64
		var delim string
		var f shapePart
		if err := rows.Scan(&base, modifier, &elem, &delim, &f.oid, &f.modifier); err != nil {
			return 0, nil, err
		}
		s.delim = delim[0]
		if f.oid != 0 {
			fields = append(fields, f)
		}
		s.scalar.setKind(base, false)
		s.scalar.setScale(int64(*modifier))
		s.scalar.setLimit(int64(*modifier))
	}
	return elem, fields, rows.Err()
}

func (s *shape) isLimited() bool {
	if s.elem != nil {
		return s.elem.isLimited()
	}
	for _, f := range s.fields {
		if f.isLimited() {
			return true
		}
	}
	return s.fields == nil && (s.scalar.limit != nil || s.scalar.kind != row.Null && s.scalar.kind != row.String)
}

// fitted returns the stored form of a text; false means that it would be
// changed or cannot be parsed.
func (s *shape) fitted(text string) (stored, why string, ok bool) {
	switch {
	case !s.isLimited():
		return text, "", true
	case s.elem != nil:
		return s.fittedArray(text)
	case s.fields != nil:
		return s.fittedFields(text)
	}
	return s.fittedScalar(text)
}

func (s *shape) fittedScalar(text string) (stored, why string, ok bool) {
	c, v := &s.scalar, row.StringValue(text)
	if c.kind != row.Null && c.kind != row.String {
		fitting, ok := sqlvalue.ConvertIn(v, c.kind, c.zone)
		if !ok || sqlvalue.Check(fitting) != nil {
			return "", hint(v, c.kind), false
		}
		if !c.verbatim {
			v = fitting
		}
	}
	if l := c.limit; l != nil && (l.from == row.Null || l.from == v.Kind()) {
		if _, how := l.keep(v); how != unchanged {
			return "", l.why, false
		}
	}
	if v.Kind() == row.DecimalKind && c.scale != nil {
		d := v.Decimal().Reduce()
		if *c.scale < 0 && !isMultiple(d, -*c.scale) || *c.scale >= 0 && d.Scale() > *c.scale {
			return "", fmt.Sprintf("a part has a scale of %d", *c.scale), false
		}
	}
	if stored, ok := sqlvalue.Text(v); ok {
		return stored, "", true
	}
	return string(sqlvalue.AppendText(nil, v)), "", true
}

const notTakenApart = "it is not an array or a composite of the form that PostgreSQL writes"

func (s *shape) fittedArray(text string) (stored, why string, ok bool) {
	var b strings.Builder
	if strings.HasPrefix(text, "[") {
		bounds, _, _ := strings.Cut(text, "{")
		b.WriteString(bounds)
		text = text[len(bounds):]
	}
	depth := 0
	for rest := text; rest != ""; {
		switch c := rest[0]; {
		case c == '{' || c == '}':
			if depth++; c == '}' {
				depth -= 2
			}
			fallthrough
		case c == s.delim || strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			b.WriteByte(c)
			rest = rest[1:]
			continue
		}
		element, length, null, ok := s.cutElement(rest)
		if !ok || depth < 1 {
			return "", notTakenApart, false
		}
		rest = rest[length:]
		if null {
			b.WriteString("NULL")
			continue
		}
		if element, why, ok = s.elem.fitted(element); !ok {
			return "", why, false
		}
		b.Write(appendArrayText(nil, element))
	}
	return b.String(), notTakenApart, depth == 0
}

func (s *shape) cutElement(rest string) (element string, length int, null, ok bool) {
	var b strings.Builder
	quotes := rest[0] == '"'
	if quotes {
		length = 1
	}
	escaped := false
	for ; length < len(rest); length++ {
		c := rest[length]
		switch {
		case c == '\\' && length+1 < len(rest):
			length++
			escaped = true
			b.WriteByte(rest[length])
			continue
		case quotes && c == '"':
			return b.String(), length + 1, false, true
		case !quotes && (c == s.delim || c == '}'):
			element = strings.TrimRight(b.String(), " \t\n\r\v\f")
			return element, length, !escaped && strings.EqualFold(element, "null"), true
		case !quotes && (c == '"' || c == '{'):
			return "", 0, false, false
		}
		b.WriteByte(c)
	}
	return "", 0, false, false
}

func (s *shape) fittedFields(text string) (stored, why string, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '(' {
		return "", notTakenApart, false
	}
	b := []byte{'('}
	rest := text[1:]
	for i, f := range s.fields {
		field, length, null, ok := cutField(rest)
		last := i == len(s.fields)-1
		if !ok || last != (rest[length] == ')') || last && length+1 != len(rest) {
			return "", notTakenApart, false
		}
		rest = rest[length+1:]
		if i > 0 {
			b = append(b, ',')
		}
		if null {
			continue
		}
		if field, why, ok = f.fitted(field); !ok {
			return "", why, false
		}
		b = appendArrayText(b, field)
	}
	return string(append(b, ')')), "", true
}

// An empty field without quotes is null.
func cutField(rest string) (field string, length int, null, ok bool) {
	var b strings.Builder
	quotes, quoted := false, false
	for ; length < len(rest); length++ {
		c := rest[length]
		switch {
		case c == '\\' && length+1 < len(rest):
			length++
			b.WriteByte(rest[length])
			continue
		case c == '"' && quotes && length+1 < len(rest) && rest[length+1] == '"':
			length++
		case c == '"':
			quotes, quoted = !quotes, true
			continue
		case !quotes && (c == ',' || c == ')'):
			return b.String(), length, length == 0 && !quoted, true
		}
		b.WriteByte(c)
	}
	return "", 0, false, false
}

func appendArrayText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(append(dst, s[from:i]...), '\\')
			from = i
		}
	}
	return append(append(dst, s[from:]...), '"')
}

func (c *column) setShape(s *shape) {
	if s.elem == nil && !s.isLimited() {
		return
	}
	if c.taken = s; s.elem != nil && !c.kind.IsList() && s.elem.scalar.limit != nil {
		c.limit = s.elem.scalar.limit.ofElements()
	}
}
