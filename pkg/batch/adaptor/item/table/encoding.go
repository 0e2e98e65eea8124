package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// encoding is the encoded form of one chunk's records (rule C20b).
type encoding struct {
	writer *writer
	plan   *plan
	batch  batch
}

var errNoPlan = errors.New("there is no plan to write the records")

// NewEncoding implements item.RecordEncoder.
func (w *writer) NewEncoding() item.RecordEncoding {
	if w.config.Batch > 0 || w.config.Where != "" {
		return nil
	}
	return &encoding{writer: w, batch: w.engine.newBatch()}
}

func (e *encoding) EncodeRecords(schema *row.Schema, records [][]row.Value) error {
	e.plan = nil
	p := e.writer.planned.Load()
	if p == nil || p.rekeys || (p.schema != schema && !p.schema.SameShape(schema)) {
		return errNoPlan
	}
	if err := e.batch.encode(p, records); err != nil {
		return err
	}
	e.plan = p
	return nil
}

// WriteEncoded implements item.RecordEncoder. An encoding by another plan cannot be used.
func (w *writer) WriteEncoded(ctx context.Context, of item.RecordEncoding) (done bool, err error) {
	e, ok := of.(*encoding)
	if !ok {
		return false, fmt.Errorf("table %s: a %T is not an encoding of this writer", w.config.Name, of)
	}
	defer e.batch.forget()
	t, ok := tx.From(ctx, w.db.Name())
	if !ok {
		return false, w.noTransaction()
	}
	w.forgetOld(t)
	if e.plan == nil || e.plan != w.plan {
		return false, nil
	}
	if err := e.batch.send(ctx, t.Conn(), w.plan); err != nil {
		return false, w.failed(err)
	}
	return true, nil
}
