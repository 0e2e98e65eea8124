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
	path string
	find *jsontext.Finder // of the array at path
	skip int64            // rows of the next document, read before a restart

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
	e := &exploded{path: path, find: jsontext.NewFinder()}
	e.find.AddName(path)
	return e
}

func (e *exploded) next(ctx context.Context, frame framing, c *cursor) ([]byte, error) {
	for {
		if e.doc != nil {
			return e.take(c)
		}
		before := c.at
		skip := e.skip
		doc, err := frame.next(ctx, c)
		if err != nil {
			return nil, err
		}
		e.skip = 0
		if err := e.begin(c, doc, before); err != nil {
			return nil, item.Consumed(c.Meta(), err)
		}
		for range skip {
			if e.doc == nil {
				break
			}
			if _, err := e.take(c); err != nil {
				return nil, err
			}
		}
	}
}

// begin checks no more than it must: text that is not strict JSON is found in its row.
func (e *exploded) begin(c *cursor, doc []byte, before docPosition) error {
	if err := e.find.Locate(doc); err != nil {
		return exception.InvalidItem("", exception.ClassParse, jsontext.BadDocument(doc, err))
	}
	array := e.find.Found[0]
	if array == nil || array[0] == 'n' {
		return nil
	}
	if array[0] != '[' {
		return exception.InvalidItem("", exception.ClassParse,
			&jsontext.PathError{Msg: e.path + " is not an array (explode): " + jsontext.Shorten(array)})
	}
	e.doc, e.offset, e.line, e.before, e.rows, e.counted = doc, c.raw.offset, c.line, before, 0, 0
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

func (e *exploded) take(c *cursor) ([]byte, error) {
	start := e.at
	n, err := c.scan.ValueLen(e.doc[start:e.end], true)
	if err != nil { // cannot be: Locate has read it
		return nil, err
	}
	e.row = append(append(append(e.row[:0], e.doc[:e.array]...), e.doc[start:start+n]...), e.doc[e.end:]...)
	e.line += int64(bytes.Count(e.doc[e.counted:start], []byte("\n")))
	e.counted = start
	e.rows++
	e.at = start + n
	c.line, c.row = e.line, e.rows
	c.raw = span{offset: e.offset + int64(start), length: int64(n), exploded: true}
	e.finish()
	return e.row, nil
}

// position returns where the next row starts: its document, and the rows before it.
func (e *exploded) position(next docPosition) (docPosition, int64) {
	if e.doc == nil {
		return next, e.skip
	}
	return e.before, e.rows
}
