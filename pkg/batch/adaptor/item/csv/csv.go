// Package csv reads and writes files of delimited text: the components `csv` of a job file.
//
// It imports core with its folders, internal/filestream, internal/recordtypes and internal/nearest.
package csv

import (
	"context"
	"reflect"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// ReaderConfig configures the csv reader.
type ReaderConfig struct {
	Path        string                     `key:"path" main:"true" path:"std" required:"true" doc:"The file to read; - is the standard input."`
	Item        item.Type                  `key:"item" doc:"The type of the items. Columns are matched by the header, or by position if there is none; other columns are ignored. Without it every column is a string field."`
	Delimiter   string                     `key:"delimiter" default:"," doc:"The text between fields: one or more characters, tab, or blanks (runs of spaces and tabs). A first line sep=; sets it, too."`
	Header      string                     `key:"header" default:"true" enum:"true,false,exact,loose" doc:"Whether the first record names the columns: true or exact matches the names as written; loose ignores case, blanks and no-break spaces."`
	Columns     int                        `key:"columns" form:"columns is a number; for the types of the columns write item: {id: int}" doc:"With header: false, the number of fields of each record [as in the first record]. A record with a different number is an invalid item."`
	Nulls       []string                   `key:"nulls" doc:"The texts that mean null in every field, if they are not quoted. Without it an empty field is null; in a string null and a bytes null only if it is not quoted."`
	Records     map[string]recordType      `key:"records" doc:"The types of records, if the file has several, by the text of the field type_at, such as H, D and T. The file then has no header. The type * matches all other records; without it they are invalid items."`
	TypeAt      int                        `key:"type_at" doc:"The field of a record that holds the name of its type, counted from 1; without it the first."`
	SkipLines   int                        `key:"skip_lines" default:"0" doc:"The number of lines to skip before the header or the first record."`
	FooterLines int                        `key:"footer_lines" default:"0" doc:"The number of lines at the end of the file that are not records. Blank lines and comments among and after them do not count."`
	Short       string                     `key:"short" default:"error" enum:"error,null" doc:"How to treat a record with fewer fields than the header: an invalid item, or the missing fields are null."`
	Long        string                     `key:"long" default:"error" enum:"error,ignore" doc:"How to treat a record with more fields than the header: an invalid item, or the fields after the last column are ignored."`
	Unknown     string                     `key:"unknown" default:"ignore" enum:"error,warn,ignore" doc:"How to treat columns of the header that the item does not have: an error when the file is opened, a warning that is logged and stored with the step, or nothing."`
	Comment     string                     `key:"comment" doc:"A character; lines that begin with it are comments, not records."`
	Trim        bool                       `key:"trim" default:"false" doc:"Remove white space around each field."`
	Quote       string                     `key:"quote" default:"\"" form:"if no character is the quote, write quote: none" doc:"The character around quoted fields, or none, which makes a quote ordinary text."`
	Escape      string                     `key:"escape" doc:"The character that escapes a quote inside quotes, and itself, such as \\ [the quote is doubled, which is always accepted]."`
	LazyQuotes  bool                       `key:"lazy_quotes" default:"false" doc:"Accept quotes inside a field as text instead of rejecting the record."`
	Encoding    filestream.EncodingName    `key:"encoding" default:"utf-8" doc:"The text's encoding. A byte order mark is recognised by itself. Bytes that the encoding does not have make the item invalid."`
	Compression filestream.ReadCompression `key:"compression" default:"auto" doc:"Decompress the file; auto goes by the suffix: .gz, .zst, .bz2 or .xz. A zip archive is read with zip, or with member."`
	Member      string                     `key:"member" doc:"Which file of a zip archive is read: its name, or a pattern with *, ? and [a-z] that one file of it has; without a / folders do not count. Without it the archive must have one file."`
	MaxLine     registry.Size              `key:"max_line" default:"16MB" doc:"The longest record; a longer one is an invalid item."`
}

const defaultMaxLine registry.Size = 16 << 20

// writerConfig configures the csv writer.
type writerConfig struct {
	Path        string                      `key:"path" main:"true" path:"std" output:"true" required:"true" doc:"The file to write; - is the standard output. It is written as PATH.part.NAME, a name of the attempt's own, and renamed when the step is done; what was there is replaced."`
	Append      bool                        `key:"append" default:"false" doc:"Append to the existing file; without it the file is replaced. The part begins as a copy of the file. A last line without a line end gets one. The header is not written again; the file's header must be the same as this step's."`
	Header      bool                        `key:"header" default:"true" doc:"Whether the first record names the columns."`
	Delimiter   string                      `key:"delimiter" default:"," doc:"The character between fields, or tab."`
	LineEnd     string                      `key:"line_end" default:"lf" enum:"lf,crlf" doc:"How a record ends."`
	Quote       string                      `key:"quote" default:"minimal" doc:"Quote the fields that need it (minimal) or all fields; or the quote character itself."`
	QuoteAll    bool                        `key:"quote_all" default:"false" doc:"Quote all fields except nulls, as quote: all does."`
	Escape      string                      `key:"escape" doc:"The character that escapes a quote inside quotes, and itself, such as \\ [the quote is doubled]."`
	Nulls       string                      `key:"nulls" default:"" doc:"The text of a null, unless the field has its own (the first of its null_if). It is written without quotes; a value with the same text is quoted, as is an empty text in a string null and a bytes null."`
	Encoding    filestream.EncodingName     `key:"encoding" default:"utf-8" doc:"The text's encoding. A character that it lacks makes the item invalid."`
	Compression filestream.WriteCompression `key:"compression" default:"auto" doc:"Compress the file, one gzip member or zstd frame per chunk; auto goes by the suffix: .gz or .zst."`
}

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
			Config:  reflect.TypeFor[ReaderConfig](),
			Types:   readerTypes,
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return newStepReader(*cfg.(*ReaderConfig), b.Out, b.StepContext)
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
	if c := cfg.(*ReaderConfig); c.Records != nil {
		_, err := compileRecords(c, c.Item)
		return c.Item, err
	}
	itemType := cfg.(*ReaderConfig).Item
	if itemType == nil {
		open, err := row.Open()
		return item.RowOf("", open), err
	}
	return itemType, hasColumns(itemType, "item")
}

func writerTypes(_ any, in item.Type) (item.Type, error) { return in, hasColumns(in, "") }

func hasColumns(itemType item.Type, key string) error {
	if itemType.Schema() != nil {
		return nil
	}
	_, err := itemType.FromRecords(nil)
	if key == "" {
		return err
	}
	return &registry.ConfigError{Key: key, Err: err}
}
