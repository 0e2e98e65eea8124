package csv

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Empty is headerNone in Go.
const (
	headerNone  = "false"
	headerExact = "exact"
	headerLoose = "loose"
)

const (
	shortNull       = "null"
	longIgnore      = "ignore"
	unknownError    = "error"
	unknownWarn     = "warn"
	quoteNone       = "none"
	quoteMinimal    = "minimal"
	quoteAll        = "all"
	delimiterBlanks = "blanks"
)

func (c *readerConfig) hasHeader() bool { return c.Header != "" && c.Header != headerNone }

type problems struct{ errs []error }

func (p *problems) add(key string, err error) {
	if err != nil {
		p.errs = append(p.errs, &registry.ConfigError{Key: key, Err: err})
	}
}

func (p *problems) addIf(wrong bool, key, text string) {
	if wrong {
		p.add(key, errors.New(text))
	}
}

// Validate reports an invalid value of a key.
func (c *readerConfig) Validate() error {
	var p problems
	comma, _, err := c.delimiter()
	p.add("delimiter", err)
	quote, err := readerQuote(c.Quote)
	p.add("quote", err)
	escape, err := escapeOf(c.Escape, quote)
	p.add("escape", err)
	p.addIf(quote != 0 && strings.IndexByte(comma, quote) >= 0, "quote", "the delimiter contains it, too: choose another character")
	p.addIf(escape != 0 && strings.IndexByte(comma, escape) >= 0, "escape", "the delimiter contains it, too: choose another character")
	if c.Comment != "" {
		mark, err := character(c.Comment)
		if err != nil {
			err = fmt.Errorf("%w: write one character, such as #", err)
		}
		if err == nil && strings.HasPrefix(comma, c.Comment) {
			err = errors.New("it is the delimiter, too: choose another character")
		}
		if err == nil && quote != 0 && mark == rune(quote) {
			err = errors.New("it is the quote, too: choose another character")
		}
		p.add("comment", err)
	}
	p.addIf(c.Columns < 0, "columns", "it is negative: omit it, or write a number from 1")
	p.addIf(c.SkipLines < 0, "skip_lines", "it is negative: omit it, or write a number from 0")
	p.addIf(c.FooterLines < 0, "footer_lines", "it is negative: omit it, or write a number from 0")
	p.addIf(c.MaxLine < 0, "max_line", "it is negative")
	p.addIf(c.Columns > 0 && c.hasHeader(), "columns", "the header determines how many fields a record has: columns needs header: false, omit it")
	p.addIf(!c.hasHeader() && (c.Unknown == unknownError || c.Unknown == unknownWarn), "unknown", "it applies to the columns of a header, and header: false means there is none: omit it")
	p.addIf(c.TypeAt < 0 || c.TypeAt > 0 && c.Records == nil, "type_at", "it is a field's number, from 1, and needs records")
	p.add("member", filestream.CheckMember(c.Member, c.Compression))
	if c.Records != nil {
		p.addIf(c.Columns > 0, "columns", "each record type has its own fields: omit it")
		p.addIf(c.Short == shortNull, "short", "it does not apply to a file with records: each record type has its own number of fields")
		p.addIf(c.Long == longIgnore, "long", "it does not apply to a file with records: each record type has its own number of fields")
	}
	p.add("encoding", filestream.CheckEncoding(c.Encoding))
	return errors.Join(p.errs...)
}

// Validate reports an invalid value of a key.
func (c *writerConfig) Validate() error {
	var p problems
	comma, err := delimiter(c.Delimiter)
	if err == nil && c.Delimiter == delimiterBlanks {
		err = errors.New("blanks is for readers only: write tab, or a blank in quotes")
	}
	p.add("delimiter", err)
	quote, _, err := c.quote()
	p.add("quote", err)
	escape, err := escapeOf(c.Escape, quote)
	p.add("escape", err)
	p.addIf(quote != 0 && strings.IndexByte(comma, quote) >= 0, "quote", "the delimiter contains it, too: choose another character")
	p.addIf(escape != 0 && strings.IndexByte(comma, escape) >= 0, "escape", "the delimiter contains it, too: choose another character")
	if c.Nulls != "" && (strings.ContainsAny(c.Nulls, "\r\n"+string(rune(quote))) || strings.Contains(c.Nulls, comma)) {
		p.add("nulls", fmt.Errorf("a null is written without quotes: %q contains a delimiter, a quote or a line end", c.Nulls))
	}
	p.add("encoding", filestream.CheckEncoding(c.Encoding))
	return errors.Join(p.errs...)
}

// runs means any number of blanks.
func (c *readerConfig) delimiter() (comma string, runs bool, err error) {
	if c.Delimiter == delimiterBlanks {
		return " ", true, nil
	}
	comma, err = delimiter(c.Delimiter)
	return comma, false, err
}

func delimiter(text string) (string, error) {
	switch text {
	case "":
		return ",", nil
	case "tab", `\t`:
		return "\t", nil
	case delimiterBlanks:
		return " ", nil
	case `\s`, `\s+`, `\s*`, " +":
		return "", fmt.Errorf("%q is a pattern: for runs of spaces and tabs write blanks", text)
	}
	isWord := !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) })
	switch {
	case !utf8.ValidString(text) || strings.ContainsAny(text, "\"\r\n\x00\uFEFF"):
		return "", fmt.Errorf("%q cannot separate fields", text)
	case isWord && utf8.RuneCountInString(text) > 1:
		return "", fmt.Errorf("%q is a word: write the character itself, tab or blanks", text)
	}
	return text, nil
}

func character(text string) (rune, error) {
	r, size := utf8.DecodeRuneInString(text)
	if size != len(text) || r == utf8.RuneError || strings.ContainsRune("\"\r\n\x00\uFEFF", r) {
		return 0, fmt.Errorf("%q is not a single character that is allowed here", text)
	}
	return r, nil
}

func readerQuote(text string) (byte, error) {
	switch text {
	case "":
		return '"', nil
	case quoteNone:
		return 0, nil
	}
	quote, err := mark(text)
	if err != nil {
		err = fmt.Errorf("%w (write the character itself, such as ', or none)", err)
	}
	return quote, err
}

func (c *writerConfig) quote() (quote byte, all bool, err error) {
	switch c.Quote {
	case "", quoteMinimal:
		return '"', c.QuoteAll, nil
	case quoteAll:
		return '"', true, nil
	}
	if quote, err = mark(c.Quote); err != nil {
		err = fmt.Errorf("%w (allowed: minimal, all, or a character)", err)
	}
	return quote, c.QuoteAll, err
}

// 0 means that a quote is doubled.
func escapeOf(text string, quote byte) (byte, error) {
	switch {
	case text == "" || text == string(rune(quote)):
		return 0, nil
	case quote == 0:
		return 0, errors.New("without quotes there is nothing to escape: omit it")
	}
	escape, err := mark(text)
	if err != nil {
		err = fmt.Errorf("%w (write the character itself, such as \\)", err)
	}
	return escape, err
}

// an ASCII character that is not a letter, a digit or a blank
func mark(text string) (byte, error) {
	if len(text) != 1 || text[0] <= ' ' || text[0] >= utf8.RuneSelf-1 || unicode.IsLetter(rune(text[0])) || unicode.IsDigit(rune(text[0])) {
		return 0, fmt.Errorf("%q is not allowed here: write one ASCII character that is not a letter, digit or blank", text)
	}
	return text[0], nil
}

// readerConfig configures the csv reader.
type readerConfig struct {
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
	Together    bool                        `key:"together" default:"false" doc:"In a partitioned step: write one file from all parts, in their order. Each part keeps PATH.part.NAME until all parts are complete; then the step joins them and publishes the file. The header is written once. Without partitions it is refused."`
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

// recordType is a record type in a file with several.
type recordType struct {
	As      string         `key:"as" default:"detail" enum:"detail,header,trailer,ignore" doc:"The role of such a record: a detail is an item; a header gives its fields to all details after it, up to the next header of the type; a trailer is compared with the records before it; ignore leaves the record out."`
	Columns map[string]int `key:"columns" doc:"Of a detail or a header: the record's field for each field of the item, such as amount: 3, from 1."`
	Fields  int            `key:"fields" doc:"How many fields such a record has; without it as many as the first one in the file. A record with a different number is an invalid item."`
	Of      string         `key:"of" doc:"Of a trailer: the header that it closes; it is compared with the records since that header. Without it a trailer is compared with the whole file, and must be its last record. Of a header: the header that it belongs to."`
	Count   int            `key:"count" doc:"Of a trailer: the field that holds the number of records."`
	CountOf []string       `key:"count_of" doc:"The types that a trailer counts, such as [H, D, T]; without it all details, including unreadable ones."`
	Sums    map[string]int `key:"sums" doc:"Of a trailer: the fields that hold the sums of fields of the item, such as amount: 3; int and decimal only."`
}
