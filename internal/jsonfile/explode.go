package jsonfile

import (
	"bytes"
	"context"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Each row is the document with one element instead of the array (rule D9b).
type exploded struct {
	find *jsontext.Finder // of the array

	doc            []byte      // nil means that there is no current one
	offset         int64       // of doc in the file
	line           int64       // of the last text read
	before         docPosition // of the document
	array, end, at int
	counted        int    // line ends before it are counted
	rows           int64  // that were read
	row            []byte // the last one
}

func newExploded(path string) *exploded {
	e := &exploded{find: jsontext.NewFinder()}
	e.find.AddName(path)
	return e
}

func (r *Reader) nextRow(ctx context.Context) ([]byte, error) {
	for {
		if r.rows.doc != nil {
			return r.takeRow()
		}
		before := r.at
		skip := r.skipRows
		doc, err := r.frame.next(ctx, r)
		if err != nil {
			return nil, err
		}
		r.skipRows = 0
		if err := r.explode(doc, before); err != nil {
			return nil, item.Consumed(r.Meta(), err)
		}
		for range skip {
			if r.rows.doc == nil {
				break
			}
			if _, err := r.takeRow(); err != nil {
				return nil, err
			}
		}
	}
}

// explode checks no more than it must: text that is not strict JSON is found in its row.
func (r *Reader) explode(doc []byte, before docPosition) error {
	e := r.rows
	if err := e.find.Locate(doc); err != nil {
		return exception.InvalidItem("", exception.ClassParse, item.BadDocument(doc, err))
	}
	array := e.find.Found[0]
	if array == nil || array[0] == 'n' {
		return nil
	}
	if array[0] != '[' {
		return exception.InvalidItem("", exception.ClassParse,
			&jsontext.PathError{Msg: r.cfg.Explode + " is not an array (explode): " + jsontext.Shorten(array)})
	}
	e.doc, e.offset, e.line, e.before, e.rows, e.counted = doc, r.raw.offset, r.line, before, 0, 0
	e.array = e.find.Start[0]
	e.end, e.at = e.array+len(array), e.array+1
	e.finish()
	return nil
}

func (e *exploded) finish() {
	for jsontext.IsBlank(e.doc[e.at]) || e.doc[e.at] == ',' {
		e.at++
	}
	if e.at == e.end-1 {
		e.doc = nil
	}
}

func (r *Reader) takeRow() ([]byte, error) {
	e := r.rows
	start := e.at
	n, err := r.scan.ValueLen(e.doc[start:e.end], true)
	if err != nil { // cannot be: Locate has read it
		return nil, err
	}
	e.row = append(append(append(e.row[:0], e.doc[:e.array]...), e.doc[start:start+n]...), e.doc[e.end:]...)
	e.line += int64(bytes.Count(e.doc[e.counted:start], []byte("\n")))
	e.counted = start
	e.rows++
	e.at = start + n
	r.line, r.row = e.line, e.rows
	r.raw = span{offset: e.offset + int64(start), length: int64(n), exploded: true}
	e.finish()
	return e.row, nil
}
