package csv

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Empty is HeaderNone in Go.
const (
	HeaderNone  = "false"
	HeaderExact = "exact"
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

func (c *ReaderConfig) hasHeader() bool { return c.Header != "" && c.Header != HeaderNone }

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
func (c *ReaderConfig) Validate() error {
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
func (c *ReaderConfig) delimiter() (comma string, runs bool, err error) {
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
