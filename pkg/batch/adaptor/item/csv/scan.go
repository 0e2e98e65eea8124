package csv

import (
	"bytes"
	stdcsv "encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode"
)

// scanner parses records as encoding/csv does, with the same errors at the same places, but copies a record
// only once.
type scanner struct {
	comma   []byte
	comment []byte
	runs    bool // separated by runs of blanks, not by comma
	quote   byte // 0 means none
	escape  byte // before a quote in quotes, and itself; 0: a quote is doubled
	lazy    bool // quotes inside a field are text
	trim    bool // leading white space is left out
	cr      bool // a CR alone ends a line, too
	blanks  bool // an empty line is a record

	// The rest is about the last record.
	content []byte // the line itself if it has no quotes, else own
	own     []byte
	fields  []field
	before  int
	lines   int
}

type field struct {
	at, from, to int
	quoted       bool
}

var errShort = errors.New("the record has no end yet")

// Line counts from the record's first line, column from 1 in bytes.
type scanError struct {
	line, column int
	err          error
	hint         string
}

// More text in quotes would not help a record of several lines: the first quote may be the wrong one.
func (e *scanError) hintBelow() string {
	if e.hint == hintEscape {
		return e.hint
	}
	return ""
}

const (
	hintLazy   = " (lazy_quotes: true accepts it as text)"
	hintEscape = ` (if \ escapes a quote, set escape: '\')`
)

func (e *scanError) Error() string { return e.err.Error() }

// scan returns the length of the text up to the first record's end or, with a scanError, to the end of its
// line. Unless atEnd, a record that may continue is errShort. Without a record it returns io.EOF.
func (s *scanner) scan(text []byte, atEnd bool) (end int, err error) {
	s.before, s.lines, s.fields = 0, 1, s.fields[:0]
	for {
		line, n := s.cutLine(text[end:], atEnd)
		if s.runs && blankRun(line) == len(line) {
			line = line[:0]
		}
		switch {
		case n == 0 && atEnd:
			return end, io.EOF
		case n == 0:
			return end, errShort
		case len(line) > 0 && (len(s.comment) == 0 || !bytes.HasPrefix(line, s.comment)), len(line) == 0 && s.blanks:
			s.content = line
			if s.quote != 0 && bytes.IndexByte(line, s.quote) >= 0 {
				s.own = s.own[:0]
				return s.quoted(text, end, atEnd)
			}
			if s.runs {
				s.splitRuns(line, end)
			} else {
				s.split(line, end)
			}
			return end + n, nil
		}
		s.before++
		end += n
	}
}

// n is 0 if the line has no end yet, or there is none.
func (s *scanner) cutLine(text []byte, atEnd bool) (line []byte, n int) {
	if s.cr {
		return cutReturn(text, atEnd)
	}
	n = bytes.IndexByte(text, '\n') + 1
	switch {
	case n > 0:
		line = text[:n-1]
	case atEnd:
		line, n = text, len(text)
	}
	if last := len(line) - 1; last >= 0 && line[last] == '\r' {
		line = line[:last]
	}
	return line, n
}

func cutReturn(text []byte, atEnd bool) (line []byte, n int) {
	n = bytes.IndexAny(text, "\r\n")
	switch {
	case n < 0 && atEnd:
		return text, len(text)
	case n < 0, text[n] == '\r' && n+1 == len(text) && !atEnd: // a line feed may follow
		return nil, 0
	case text[n] == '\r' && n+1 < len(text) && text[n+1] == '\n':
		return text[:n], n + 2
	}
	return text[:n], n + 1
}

func (s *scanner) linesIn(text []byte) (lines, begin int) {
	ends := "\n"
	if s.cr {
		ends = "\r\n"
	}
	for {
		n := bytes.IndexAny(text[begin:], ends)
		if n < 0 {
			return lines, begin
		}
		if n += begin; text[n] == '\r' && n+1 < len(text) && text[n+1] == '\n' {
			n++
		}
		lines, begin = lines+1, n+1
	}
}

func (s *scanner) split(line []byte, at int) {
	for from := 0; ; {
		if s.trim {
			from += blanks(line[from:])
		}
		n := s.index(line[from:])
		if n < 0 {
			s.fields = append(s.fields, field{at: at + from, from: from, to: len(line)})
			return
		}
		s.fields = append(s.fields, field{at: at + from, from: from, to: from + n})
		from += n + len(s.comma)
	}
}

func (s *scanner) index(text []byte) int {
	if len(s.comma) == 1 {
		return bytes.IndexByte(text, s.comma[0])
	}
	return bytes.Index(text, s.comma)
}

func (s *scanner) splitRuns(line []byte, at int) {
	for from, last := blankRun(line), false; !last; {
		var n, size int
		n, size, last = s.cut(line[from:])
		s.fields = append(s.fields, field{at: at + from, from: from, to: from + n})
		from += n + size
	}
}

// last means that there is no next field.
func (s *scanner) cut(rest []byte) (end, size int, last bool) {
	if s.runs {
		if end = bytes.IndexAny(rest, " \t"); end < 0 {
			return len(rest), 0, true
		}
		size = blankRun(rest[end:])
		return end, size, end+size == len(rest)
	}
	if end = s.index(rest); end < 0 {
		return len(rest), 0, true
	}
	return end, len(s.comma), false
}

func blankRun(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " \t")) }

func blanks(text []byte) int {
	n := bytes.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
	if n < 0 {
		return len(text)
	}
	return n
}

func (s *scanner) quoted(text []byte, at int, atEnd bool) (end int, err error) {
	c := cursor{text: text, at: at, atEnd: atEnd}
	c.line, c.length = s.cutLine(text[at:], atEnd)
	if s.runs {
		c.offset = blankRun(c.line)
	}
	for last := false; !last && err == nil; {
		if s.trim {
			c.offset += blanks(c.line[c.offset:])
		}
		if len(s.fields) > 0 {
			s.own = append(s.own, ',') // keeps the bytes of two fields from being one character
		}
		begin, from := c.at+c.offset, len(s.own)
		rest := c.line[c.offset:]
		quoted := len(rest) > 0 && rest[0] == s.quote
		if quoted {
			last, err = s.inQuotes(&c)
		} else {
			last, err = s.bare(&c)
		}
		s.fields = append(s.fields, field{begin, from, len(s.own), quoted})
	}
	s.content = s.own
	return c.at + c.length, err
}

type cursor struct {
	text   []byte
	atEnd  bool
	at     int
	line   []byte
	length int
	offset int
}

func (s *scanner) bare(c *cursor) (last bool, err error) {
	rest := c.line[c.offset:]
	n, size, last := s.cut(rest)
	rest = rest[:n]
	if quote := bytes.IndexByte(rest, s.quote); quote >= 0 && !s.lazy {
		return false, &scanError{s.lines, c.offset + quote + 1, s.wrong(stdcsv.ErrBareQuote), hintLazy}
	}
	s.own = append(s.own, rest...)
	c.offset += n + size
	return last, nil
}

func (s *scanner) inQuotes(c *cursor) (last bool, err error) {
	c.offset++
	for {
		rest := c.line[c.offset:]
		n := s.endOfQuoted(rest)
		if n < 0 {
			s.own = append(s.own, rest...)
			if ended, err := s.nextLine(c); ended || err != nil {
				return true, err
			}
			continue
		}
		s.own = append(s.own, rest[:n]...)
		c.offset += n + 1
		escaped := rest[n] != s.quote
		switch rest = rest[n+1:]; {
		case escaped && len(rest) > 0 && (rest[0] == s.quote || rest[0] == s.escape):
			s.own = append(s.own, rest[0])
			c.offset++
		case escaped:
			s.own = append(s.own, s.escape)
		case len(rest) == 0:
			return true, nil
		case rest[0] == s.quote:
			s.own = append(s.own, s.quote)
			c.offset++
		case s.between(rest) > 0:
			size := s.between(rest)
			c.offset += size
			return s.runs && size == len(rest), nil
		case s.lazy:
			s.own = append(s.own, s.quote)
		case c.offset > 1 && c.line[c.offset-2] == '\\' && s.escape == 0:
			return false, &scanError{s.lines, c.offset, s.wrong(stdcsv.ErrQuote), hintEscape}
		default:
			return false, &scanError{s.lines, c.offset, s.wrong(stdcsv.ErrQuote), hintLazy}
		}
	}
}

func (s *scanner) wrong(err error) error {
	if s.quote == '"' {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), `"`, string(rune(s.quote))))
}

func (s *scanner) endOfQuoted(rest []byte) int {
	n := bytes.IndexByte(rest, s.quote)
	if s.escape == 0 {
		return n
	}
	if e := bytes.IndexByte(rest, s.escape); e >= 0 && (n < 0 || e < n) {
		return e
	}
	return n
}

func (s *scanner) between(text []byte) int {
	switch {
	case s.runs:
		return blankRun(text)
	case bytes.HasPrefix(text, s.comma):
		return len(s.comma)
	}
	return 0
}

// The end of the line is part of the field, unchanged. ended means that the text is over, and that the
// field may end there.
func (s *scanner) nextLine(c *cursor) (ended bool, err error) {
	end := c.text[c.at+len(c.line) : c.at+c.length]
	s.own = append(s.own, end...)
	line, length := s.cutLine(c.text[c.at+c.length:], c.atEnd)
	switch {
	case length == 0 && !c.atEnd:
		return false, errShort
	case length == 0 && s.lazy:
		return true, nil
	case length == 0:
		return false, &scanError{s.lines, len(c.line) + min(len(end), 1) + 1, s.wrong(stdcsv.ErrQuote), ""}
	}
	c.at, c.line, c.length, c.offset = c.at+c.length, line, length, 0
	s.lines++
	return false, nil
}
