// Package text reads and writes files of lines: the components `fixed`, for fields at fixed places, and
// `lines`, for whole lines. A file of any size takes the memory of one line.
//
// It imports core with its folders, internal/filestream, internal/recordtypes and internal/nearest.
package text

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// trailerConfig is the last line of a file, with totals.
type trailerConfig struct {
	Begins string `key:"begins" main:"true" required:"true" literal:"true" doc:"The text at the start of this line; no record starts with it."`
	Count  string `key:"count" doc:"The position of the number of records: FIRST-LAST, characters of the line from 1. The writer pads it with zeros."`

	Sums map[string]string `key:"sums" doc:"The positions of sums of fields, such as amount: 9-23; int and decimal only. A sum has the format of the field's column, with the same decimals, padded with zeros."`
}

// fixedReaderConfig configures the reader `fixed`.
type fixedReaderConfig struct {
	Path        string                     `key:"path" main:"true" path:"std" required:"true" doc:"The file to read; - is the standard input."`
	Item        item.Type                  `key:"item" required:"true" doc:"The type of the items."`
	Columns     map[string]columnConfig    `key:"columns" doc:"The position of each field, such as id: 1-9. Required without records."`
	Length      int                        `key:"length" doc:"The length of a record in bytes, in a file without line ends: positions are then bytes, and meta.line is the number of the record. Without it a record is a line."`
	Records     map[string]recordType      `key:"records" doc:"The types of records, if the file has several, by the text that a record begins with, such as H, D and T. The longest match wins. The type * matches all other records; without it they are invalid items."`
	TypeAt      string                     `key:"type_at" doc:"The position of the type's name in a record that does not begin with it: FIRST-LAST; blanks around it are ignored."`
	Record      string                     `key:"record" literal:"true" doc:"The text at the start of each record; a line that begins otherwise is an invalid item."`
	Header      string                     `key:"header" literal:"true" doc:"The text at the start of the first line, which is then not a record; a file that begins otherwise fails the step."`
	HeaderLines int                        `key:"header_lines" default:"0" doc:"How many lines come before the first record, if the header is not identified by its first characters."`
	Trailer     *trailerConfig             `key:"trailer" doc:"The last line. If it is missing, has a different number of records, or is not the last, the step fails. It is read together with the last record, so the last chunk does not commit in that case."`
	Short       bool                       `key:"short" default:"false" doc:"Whether a line may end before its last column, for example because an editor removed trailing blanks; the missing part is blank. Otherwise it is an invalid item."`
	Encoding    filestream.EncodingName    `key:"encoding" default:"utf-8" doc:"The text's encoding. A byte order mark is recognised by itself, unless the records have a length: then each field is decoded on its own. Bytes that the encoding does not have make the item invalid."`
	Compression filestream.ReadCompression `key:"compression" default:"auto" doc:"Decompress the file; auto goes by the suffix: .gz, .zst, .bz2 or .xz. A zip archive is read with zip, or with member."`
	Member      string                     `key:"member" doc:"Which file of a zip archive is read: its name, or a pattern with *, ? and [a-z] that one file of it has; without a / folders do not count. Without it the archive must have one file."`
	MaxLine     registry.Size              `key:"max_line" default:"1MB" doc:"The longest line; a longer one is an invalid item."`
}

const defaultMaxLine registry.Size = 1 << 20

// Validate reports an invalid value of a key.
func (c *fixedReaderConfig) Validate() error {
	errs := append(checkFile(c.Encoding, c.Length, c.MaxLine), checkMember(c.Member, c.Compression)...)
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	if c.HeaderLines < 0 {
		bad("header_lines", "it is negative")
	}
	if c.Header != "" && c.HeaderLines > 1 {
		bad("header_lines", "header means that there is one such line; set one of the two")
	}
	if c.Length > 0 && c.Short {
		bad("short", "all records have the same length; omit it")
	}
	checkRecords(bad, len(c.Records), len(c.Columns), c.TypeAt, c.Record, c.Trailer)
	return errors.Join(append(errs, checkMarks(c.Record, c.Header, c.Trailer)...)...)
}

func checkRecords(bad func(key, format string, args ...any), records, columns int, typeAt, record string, trailer *trailerConfig) {
	switch {
	case records == 0 && columns == 0:
		bad("columns", "the positions of the fields are missing; give each field its position, such as id: 1-9")
	case records == 0 && typeAt != "":
		bad("type_at", "it applies to records, but there are none")
	case records > 0 && columns > 0:
		bad("columns", "each record type has its own columns; omit these")
	case records > 0 && record != "":
		bad("record", "records defines what records begin with; omit it")
	case records > 0 && trailer != nil:
		bad("trailer", "a trailer is a type of records: T: {as: trailer}")
	}
}

func checkFile(encoding filestream.EncodingName, length int, longest registry.Size) (errs []error) {
	if longest < 0 {
		errs = append(errs, &registry.ConfigError{Key: "max_line", Err: errors.New("it is negative")})
	}
	if length < 0 || length > maxWidth {
		errs = append(errs, &registry.ConfigError{Key: "length", Err: fmt.Errorf("it is not a number of bytes from 1 to %d", maxWidth)})
	}
	if err := checkEncoding(encoding, length); err != nil {
		errs = append(errs, &registry.ConfigError{Key: "encoding", Err: err})
	}
	return errs
}

func checkMember(member string, compression filestream.ReadCompression) []error {
	if err := filestream.CheckMember(member, compression); err != nil {
		return []error{&registry.ConfigError{Key: "member", Err: err}}
	}
	return nil
}

// Marks must not make two kinds of lines look the same.
func checkMarks(record, header string, trailer *trailerConfig) (errs []error) {
	if trailer == nil {
		trailer = &trailerConfig{}
	}
	for key, text := range map[string]string{"record": record, "header": header, "trailer.begins": trailer.Begins} {
		if strings.ContainsAny(text, "\r\n") {
			errs = append(errs, &registry.ConfigError{Key: key, Err: errors.New("it has a line end")})
		}
	}
	if record != "" && trailer.Begins != "" && (strings.HasPrefix(record, trailer.Begins) || strings.HasPrefix(trailer.Begins, record)) {
		errs = append(errs, &registry.ConfigError{Key: "trailer.begins", Err: fmt.Errorf("%q cannot be distinguished from %q, the start of a record", trailer.Begins, record)})
	}
	if trailer.Count == "" {
		return errs
	}
	at, err := spanOf(trailer.Count)
	switch {
	case err == nil && at.first <= len([]rune(trailer.Begins)):
		err = fmt.Errorf("it begins at %d, inside %q", at.first, trailer.Begins)
	}
	if err != nil {
		errs = append(errs, &registry.ConfigError{Key: "trailer.count", Err: err})
	}
	return errs
}

// fixedWriterConfig configures the writer `fixed`.
type fixedWriterConfig struct {
	Path        string                      `key:"path" main:"true" path:"std" output:"true" required:"true" doc:"The file to write; - is the standard output. It is written as PATH.part.NAME, a name of the attempt's own, and renamed when the step is done; what was there is replaced."`
	Columns     map[string]columnConfig     `key:"columns" doc:"The position of each field, such as id: 1-9; other fields are not written. Required without records."`
	Records     map[string]recordType       `key:"records" doc:"The types of records, if the file has several, as the reader has them. A header is written before the first item, and again when one of its fields changes; trailers are written with their counts. If there are several types of details, the field record of an item selects the type of its record."`
	TypeAt      string                      `key:"type_at" doc:"The position of the type's name, if it is not at the beginning of the record: FIRST-LAST."`
	Length      int                         `key:"length" doc:"The length of a record in bytes, in a file without line ends: positions are then bytes. Without it a record is a line."`
	Append      bool                        `key:"append" default:"false" doc:"Append to the existing file; without it the file is replaced. The part begins as a copy of the file. A last line without a line end gets one. The header is not written again; the file's header must be the same as this step's. There is no trailer."`
	Record      string                      `key:"record" literal:"true" doc:"The text at the start of each record."`
	Header      string                      `key:"header" doc:"The first line, such as H${params.date}."`
	Trailer     *trailerConfig              `key:"trailer" doc:"The last line."`
	LineEnd     string                      `key:"line_end" default:"lf" enum:"lf,crlf" doc:"The line ending."`
	Encoding    filestream.EncodingName     `key:"encoding" default:"utf-8" doc:"The text's encoding. A character that it lacks makes the item invalid."`
	Compression filestream.WriteCompression `key:"compression" default:"auto" doc:"Compress the file, one gzip member or zstd frame per chunk; auto goes by the suffix: .gz or .zst."`
}

// Validate reports an invalid value of a key.
func (c *fixedWriterConfig) Validate() error {
	errs := checkFile(c.Encoding, c.Length, 0)
	checkRecords(func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}, len(c.Records), len(c.Columns), c.TypeAt, c.Record, c.Trailer)
	switch {
	case c.Append && c.Trailer != nil:
		errs = append(errs, &registry.ConfigError{Key: "append", Err: errors.New("the file has a trailer, and nothing can follow it: remove one of the two")})
	case c.Append && c.Records != nil:
		errs = append(errs, &registry.ConfigError{Key: "append", Err: errors.New("a file with several record types has headers and trailers, so it must be written as a whole")})
	}
	return errors.Join(append(errs, checkMarks(c.Record, c.Header, c.Trailer)...)...)
}

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

func writerLayout(cfg *fixedWriterConfig, in item.Type) (*layout, error) {
	if err := named(in, "columns"); err != nil {
		return nil, err
	}
	of, err := shapeOf(cfg.Length, cfg.Encoding)
	if err != nil {
		return nil, &registry.ConfigError{Key: "encoding", Err: err}
	}
	return newLayout(cfg.Columns, cfg.Record, of, in.Schema(), false)
}

func named(itemType item.Type, key string) error {
	switch {
	case itemType == nil:
		return &registry.ConfigError{Key: key, Err: errors.New("the item type is missing: a line has no header that names the fields")}
	case itemType.Schema() == nil:
		_, err := itemType.FromRecords(nil)
		return &registry.ConfigError{Key: key, Err: err}
	case itemType.Schema().IsOpen():
		return &registry.ConfigError{Key: key, Err: errors.New("the fields of the items are known only when they are read: name them with item in the reader, or with a map that has only: true")}
	}
	return nil
}
