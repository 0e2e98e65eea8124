// Package csv reads and writes files of delimited text: the components `csv` of a job file.
//
// It imports core with its folders, internal/filestream, internal/recordtypes and internal/nearest.
package csv

import (
	"context"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const (
	readerExample = `job: load
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string, paid: {type: date, from: Paid On}}}}
    writer: {table: {name: customer, key: [id], create: true}}
- step: report
  chunk:
    reader:
      csv:
        path: report.csv
        skip_lines: 2
        footer_lines: 1
        header: loose
        delimiter: ";"
        quote: "'"
        nulls: [NA]
        short: "null"
        encoding: windows-1252
        item: {id: int, name: string null, paid: {type: bool null, true: [Ja], false: [Nein]}}
    writer: {table: {name: report, key: [id], create: true}}`
	writerExample = `job: export
flow:
- step: export
  chunk:
    reader: {query: {sql: "select id, name from customer", key: [id], item: {id: int, name: string}}}
    writer: {csv: out/customers.csv}
- step: log
  chunk:
    reader: {query: {sql: "select id, name from customer", key: [id], item: {id: int, name: string null}}}
    writer: {csv: {path: out/all.csv, append: true, delimiter: ";", quote: "'", nulls: NA, line_end: crlf}}`
)

// Components describes the reader and the writer.
func Components() []registry.Component {
	return []registry.Component{
		{
			Kind: registry.KindReader, Name: "csv",
			Summary: "Reads delimited text: CSV, TSV and their relatives.",
			Doc: `Lines end with LF, CRLF, or CR alone (if the first 64 KB have no LF). Quoted
fields may span lines. A record that does not fit (a wrong number of fields,
a stray quote, a field that does not fit its type) is an invalid item, identified by
path:line; reading continues at the next record. If a stray quote would swallow
the lines after it, only the line where its record starts is lost. If the
first line is sep=; or the like, as Excel writes it, it sets the delimiter and is not a record.

A plain UTF-8 file restarts by a seek. A compressed one, or one in another
encoding, is decoded again from its start up to the position. A file that changed
since the last attempt (size, modification time or first 64 KB) is refused.

` + "`records`" + ` names the types of records of a file that has several, such as H;20261120, D;4711;12.50 and T;1;12.50. A
detail is an item with the fields of its own columns and of the headers before it; its other fields are null,
so their types must allow that. A string field ` + "`record`" + ` that has no column is the name of the type. A trailer is
read together with the last record that it counts: if they disagree, the step fails before the chunk of that record
commits (rule C15p).`,
			Example: readerExample,
			Config:  reflect.TypeFor[readerConfig](),
			Types:   readerTypes,
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return newStepReader(*cfg.(*readerConfig), b.Out, b.StepContext)
			},
		},
		{
			Kind: registry.KindWriter, Name: "csv",
			Summary: "Writes delimited text: CSV, TSV and their relatives.",
			Doc: `The columns are the fields of the items, in order, with the names of their source.
The file is published only when the step is complete. Each chunk costs one fsync.

With ` + "`append: true`" + ` the file keeps its content: the step copies it once, writes after the copy, and replaces
the file with both when it is complete. Nothing is lost or doubled if the step is killed, restarted or
frozen. If another program has changed the file meanwhile, the step fails and leaves it as it is (rule C15t).`,
			Example: writerExample,
			Config:  reflect.TypeFor[writerConfig](),
			Types:   writerTypes,
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return newWriter(*cfg.(*writerConfig), b)
			},
		},
	}
}

func readerTypes(cfg any, _ item.Type) (item.Type, error) {
	if c := cfg.(*readerConfig); c.Records != nil {
		_, err := compileRecords(c, c.Item)
		return c.Item, err
	}
	itemType := cfg.(*readerConfig).Item
	if itemType == nil {
		open, err := row.Open()
		return item.RowOf("", open), err
	}
	return itemType, hasColumns(itemType, "item")
}

func writerTypes(_ any, in item.Type) (item.Type, error) { return in, hasColumns(in, "") }

// newReader returns a reader of items of the type; nil means rows with string columns, known after Open.
func newReader(cfg readerConfig, itemType item.Type) (item.Reader, error) {
	return newStepReader(cfg, itemType, nil)
}

func newStepReader(cfg readerConfig, itemType item.Type, step func() *core.ExecutionContext) (item.Reader, error) {
	r, itemType, err := recordReader(cfg, itemType)
	if err != nil {
		return nil, err
	}
	r.context = step
	of, err := compileRecords(&cfg, itemType)
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	if of != nil {
		return itemType.FromRecords(newRecordsReader(r, of))
	}
	return itemType.FromRecords(r)
}
