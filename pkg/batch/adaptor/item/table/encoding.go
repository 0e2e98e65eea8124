package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// encoding is what the records of one chunk are sent as (rule C20b).
type encoding struct {
	writer *Writer
	plan   *plan // that they were encoded by; nil: nothing is encoded
	batch  batch
}

// errNoPlan says that the records cannot be encoded yet.
var errNoPlan = errors.New("there is no plan for the records")

// NewEncoding implements item.RecordEncoder. It is nil on SQLite, which is handed values, and
// where a chunk is written in several statements.
func (w *Writer) NewEncoding() item.RecordEncoding {
	if _, texts := w.engine.(*postgres); !texts || w.config.Batch > 0 {
		return nil
	}
	return &encoding{writer: w}
}

// EncodeRecords encodes them as the last plan of the writer says.
func (e *encoding) EncodeRecords(schema *row.Schema, records [][]row.Value) error {
	e.plan = nil
	p := e.writer.planned.Load()
	if p == nil || (p.schema != schema && !p.schema.SameShape(schema)) {
		return errNoPlan
	}
	if err := e.batch.encode(p, records); err != nil {
		return err
	}
	e.plan = p
	return nil
}

// WriteEncoded implements item.RecordEncoder. What another plan encoded does not serve.
func (w *Writer) WriteEncoded(ctx context.Context, of item.RecordEncoding) (done bool, err error) {
	e, ok := of.(*encoding)
	if !ok {
		return false, fmt.Errorf("table %s: a %T is no encoding of this writer", w.config.Name, of)
	}
	defer e.batch.forget()
	t, ok := tx.From(ctx, w.db.Name())
	if !ok {
		return false, w.noTransaction()
	}
	w.forgetOld(t)
	to, texts := w.engine.(*postgres)
	if e.plan == nil || e.plan != w.plan || !texts {
		return false, nil
	}
	if err := to.send(ctx, t.Conn(), w.plan, &e.batch); err != nil {
		return false, fmt.Errorf("table %s: %s: %w", w.config.Name, w.config.mode(), err)
	}
	return true, nil
}
