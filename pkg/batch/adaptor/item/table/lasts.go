package table

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var errRepeated = errors.New("a key is repeated")

type lasts struct {
	one  map[row.Value]int
	many map[string]int
	buf  []byte
	keep [][]row.Value
}

func (l *lasts) forget() {
	clear(l.one)
	clear(l.many)
	clear(l.keep[:cap(l.keep)])
}

func (l *lasts) lastRecords(p *plan, records [][]row.Value) [][]row.Value {
	if ascending(p, records) {
		return records
	}
	distinct := 0
	if len(p.keys) == 1 {
		if l.one == nil {
			l.one = make(map[row.Value]int, len(records))
		}
		clear(l.one)
		at := p.fields[p.keys[0]]
		for i, r := range records {
			l.one[r[at]] = i
		}
		distinct = len(l.one)
	} else {
		if l.many == nil {
			l.many = make(map[string]int, len(records))
		}
		clear(l.many)
		for i, r := range records {
			l.many[string(l.text(p, r))] = i
		}
		distinct = len(l.many)
	}
	if distinct == len(records) {
		return records
	}
	l.keep = l.keep[:0]
	for i, r := range records {
		if l.indexOf(p, r) == i {
			l.keep = append(l.keep, r)
		}
	}
	return l.keep
}

// In pages by key, clearly no two keys are equal.
func ascending(p *plan, records [][]row.Value) bool {
	at := p.fields[p.keys[0]]
	if len(p.keys) > 1 || p.schema.Field(at).Kind != row.Int {
		return false
	}
	for i := 1; i < len(records); i++ {
		if records[i-1][at].Int() >= records[i][at].Int() || records[i][at].IsNull() {
			return false
		}
	}
	return !records[0][at].IsNull()
}

func (l *lasts) indexOf(p *plan, record []row.Value) int {
	if len(p.keys) == 1 {
		return l.one[record[p.fields[p.keys[0]]]]
	}
	return l.many[string(l.text(p, record))]
}

// Every part ends with a NUL, which no value contains.
func (l *lasts) text(p *plan, record []row.Value) []byte {
	l.buf = l.buf[:0]
	for _, i := range p.keys {
		l.buf = append(sqlvalue.AppendText(l.buf, record[p.fields[i]]), 0)
	}
	return l.buf
}
