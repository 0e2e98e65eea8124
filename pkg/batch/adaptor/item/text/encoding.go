package text

import (
	"bytes"
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// ending turns the text of a record into the bytes of the file.
type ending struct {
	shape
	end string
	enc *filestream.Encoder
}

func (n *ending) appendEnded(dst, line []byte) ([]byte, error) {
	if n.codec != nil {
		if len(line) > n.length {
			return dst, fmt.Errorf("it has %d bytes, but a record has %d (length)", len(line), n.length)
		}
		dst = append(dst, line...)
		for range n.length - len(line) {
			dst = append(dst, n.codec.blank)
		}
		return dst, nil
	}
	if bytes.ContainsAny(line, "\r\n") {
		return dst, fmt.Errorf("%.80q has a line end", line)
	}
	return n.enc.Append(dst, append(line, n.end...))
}

// encoded has the records of a chunk, without the headers and trailers of several types: these depend on the records
// before them.
type encoded struct {
	cfg     *outConfig
	schema  *row.Schema
	records [][]row.Value
	text    []byte
	ends    []int // of each record, in text
	line    []byte
}

// EncodeRecords implements item.RecordEncoding.
func (e *encoded) EncodeRecords(schema *row.Schema, records [][]row.Value) (err error) {
	e.schema, e.records, e.text, e.ends = schema, records, e.text[:0], e.ends[:0]
	for _, record := range records {
		if e.line, err = e.cfg.put(e.line[:0], schema, record); err == nil {
			e.text, err = e.cfg.appendEnded(e.text, e.line)
		}
		if err != nil {
			return exception.InvalidItem(e.cfg.name, exception.ClassInvalidItem, err)
		}
		e.ends = append(e.ends, len(e.text))
	}
	return nil
}

func (w *writer) NewEncoding() item.RecordEncoding { return &encoded{cfg: &w.cfg} }

func (w *writer) WriteEncoded(_ context.Context, of item.RecordEncoding) (bool, error) {
	e, ok := of.(*encoded)
	if !ok {
		return false, w.Named(fmt.Errorf("a %T is not an encoding of this writer", of))
	}
	return true, w.write(e)
}
