// Package text reads and writes files of lines: the components `fixed`, for fields at fixed places, and
// `lines`, for whole lines. A file of any size takes the memory of one line.
//
// It imports core with its folders, internal/filestream, internal/recordtypes and internal/nearest.
package text

import (
	"context"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Components describes the readers and writers.
func Components() []registry.Component {
	return append(linesComponents(), readerComponent(), writerComponent())
}

func readerComponent() registry.Component {
	return registry.Component{
		Kind: registry.KindReader, Name: "fixed",
		Summary: "Reads records with fields at fixed positions in a line.",
		Doc: `Positions are counted in characters, from 1, whatever the encoding. A value is the text of its
column without the padding (pad): after it, or before it if it is aligned right.
A blank column is null, for a string field only with null_if: [""]. Empty lines are ignored.

A line that is too short, begins with another text than record, or has a value that
does not fit, is an invalid item, identified by path:line; reading continues at the next line.
A missing header, or a trailer that is missing, has a different number of records (unreadable
ones count, too) or different sums, or is not the last line fails the step, because the file is incomplete.

A plain UTF-8 file restarts by a seek. A file that changed since the last attempt is refused.

With ` + "`length`" + ` the file has no line ends: each record has that many bytes, positions are bytes, and each text is decoded
on its own. So records may have packed (COMP-3) and binary (COMP) numbers, and the encoding may be an EBCDIC code
page such as ` + "`ibm1047`" + `. A file whose size is not a multiple of the length fails when it is opened, before
anything is read. Numbers are exact; one with an invalid digit or sign is an invalid item, identified by its record and
field. A blank zoned or packed number is null; every binary number is a value.

` + "`records`" + ` names the types of records of a file that has several. A detail is an item. It has the fields of its
own columns and of the headers before it; its other fields are null, so their types must allow that. A string
field ` + "`record`" + ` that has no column is the name of the type. A trailer is read together with the last record that
it counts: if they disagree, the step fails before the chunk of that record commits. A header or trailer that cannot be
read fails the step (rule C15p).`,
		Example: `job: load
flow:
- step: load
  chunk:
    reader:
      fixed:
        path: in.txt
        item: {id: int, name: string}
        columns: {id: {at: 2-10, pad: "0"}, name: 11-40}
        record: D
        header: H
        trailer: {begins: T, count: 2-8}
    writer: {table: {name: customer, key: [id], create: true}}`,
		Config: reflect.TypeFor[fixedReaderConfig](),
		Types: func(cfg any, _ item.Type) (item.Type, error) {
			c := cfg.(*fixedReaderConfig)
			_, err := compile(c, c.Item)
			return c.Item, err
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newFixedReader(*cfg.(*fixedReaderConfig), b.Out)
		},
	}
}

func writerComponent() registry.Component {
	return registry.Component{
		Kind: registry.KindWriter, Name: "fixed",
		Summary: "Writes records with fields at fixed positions in a line.",
		Doc: `Each record is a line: record, and each field in its column, padded with pad. The rest of the line
is blank. A value that is longer than its column, or has a line end, is
an invalid item. A null is blank, or the first of the field's null_if.

With ` + "`length`" + ` each record has that many bytes, without line ends, and numbers may be packed or binary: see the reader
[fixed](reader-fixed.md), which reads them back. A null in a binary column is an invalid item, unless the field has a number in
null_if.

The trailer has the number of records in the file and the sums of their fields, across restarts. The file is published
only when the step is complete. Each chunk costs one fsync.`,
		Example: `job: export
flow:
- step: export
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer:
      fixed:
        path: out/pay.txt
        columns: {id: {at: 2-10, pad: "0"}, name: 11-40}
        record: D
        header: H
        trailer: {begins: T, count: 2-8}`,
		Config: reflect.TypeFor[fixedWriterConfig](),
		Types: func(cfg any, in item.Type) (item.Type, error) {
			c := cfg.(*fixedWriterConfig)
			if c.Records != nil {
				_, err := newRecordsWriter(c, in)
				return in, err
			}
			l, err := writerLayout(c, in)
			if err == nil {
				_, err = newSums(c.Trailer, l, in.Schema())
			}
			return in, err
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newFixedWriter(*cfg.(*fixedWriterConfig), b)
		},
	}
}
