package text

import (
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// recordType is a record type in a file with several.
type recordType struct {
	As      string                  `key:"as" default:"detail" enum:"detail,header,trailer,ignore" doc:"The role of such a record: a detail is an item; a header gives its fields to all details after it, up to the next header of the type; a trailer is compared with the records before it; ignore leaves the record out."`
	Columns map[string]columnConfig `key:"columns" doc:"Of a detail or a header: the positions of its fields, as in columns."`
	Of      string                  `key:"of" doc:"Of a trailer: the header that it closes; it is compared with the records since that header. Without it a trailer is compared with the whole file, and must be its last record. Of a header: the header that it belongs to."`
	Count   string                  `key:"count" doc:"Of a trailer: the position of the number of records."`
	CountOf []string                `key:"count_of" doc:"The types that a trailer counts, such as [H, D, T]; without it all details, including unreadable ones."`
	Sums    map[string]columnConfig `key:"sums" doc:"Of a trailer: the positions of sums of fields, such as amount: 9-23. A sum has the decimals, format and sign of the field's column, unless it sets its own."`
}

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
	Together    bool                        `key:"together" default:"false" doc:"In a partitioned step: write one file from all parts, in their order. Each part keeps PATH.part.NAME until all parts are complete; then the step joins them and publishes the file. The header is written once, and a trailer has the sums of all parts. Without partitions it is refused."`
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
	if c.Together && c.Records != nil {
		errs = append(errs, &registry.ConfigError{Key: "together", Err: errors.New("headers and trailers of several record types belong to the records around them, so parts cannot be joined: write the file in a step without partitions")})
	}
	return errors.Join(append(errs, checkMarks(c.Record, c.Header, c.Trailer)...)...)
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
