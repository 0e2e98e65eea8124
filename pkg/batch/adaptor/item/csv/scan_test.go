package csv

import (
	"bytes"
	stdcsv "encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type scanned struct {
	fields       []string
	lines        []int
	columns      []int
	err          error
	line, column int // of err
	end          int
}

func theirs(text []byte, s *scanner) scanned {
	r := stdcsv.NewReader(bytes.NewReader(text))
	r.Comma, _ = utf8.DecodeRune(s.comma)
	if len(s.comment) > 0 {
		r.Comment, _ = utf8.DecodeRune(s.comment)
	}
	r.LazyQuotes, r.TrimLeadingSpace, r.FieldsPerRecord = s.lazy, s.trim, -1
	record, err := r.Read()
	got := scanned{fields: record, err: err, end: int(r.InputOffset())}
	var parse *stdcsv.ParseError
	if errors.As(err, &parse) {
		got.err, got.line, got.column, got.fields = parse.Err, parse.Line, parse.Column, nil
	}
	for i := range got.fields {
		line, column := r.FieldPos(i)
		got.lines, got.columns = append(got.lines, line), append(got.columns, column)
	}
	return got
}

// ours reads the first record of the text, of which only there bytes are available yet.
func ours(text []byte, s *scanner, there int) scanned {
	end, err := s.scan(text[:there], there == len(text))
	got := scanned{err: err, end: end}
	var wrong *scanError
	if errors.As(err, &wrong) {
		got.err, got.line, got.column = wrong.err, s.before+wrong.line, wrong.column
	}
	if err != nil {
		return got
	}
	for _, f := range s.fields {
		before := text[:f.at]
		got.fields = append(got.fields, string(s.content[f.from:f.to]))
		got.lines = append(got.lines, bytes.Count(before, []byte("\n"))+1)
		got.columns = append(got.columns, len(before)-bytes.LastIndexByte(before, '\n'))
	}
	return got
}

func compareScans(t require.TestingT, text []byte, s *scanner) {
	for {
		got, want := ours(text, s, len(text)), theirs(text, s)
		quotedBytes(t, text, s, got)
		require.Equal(t, want, asTheirs(text, s, got, want), "%q", text)
		for there := range text {
			if cut := ours(text, s, there); !errors.Is(cut.err, errShort) {
				require.Equal(t, got, cut, "%q, of which %d bytes are there", text, there)
			}
		}
		if errors.Is(want.err, io.EOF) {
			return
		}
		text = text[want.end:]
	}
}

// asTheirs is got without the two differences to encoding/csv, which turns CRLF in quotes into LF, and drops
// a carriage return at the end of the text, even in open quotes.
func asTheirs(text []byte, s *scanner, got, want scanned) scanned {
	got.fields = slices.Clone(got.fields)
	open := bytes.HasSuffix(text, []byte("\r")) && got.end == len(text)
	for i, f := range got.fields {
		if open && i == len(got.fields)-1 && s.fields[i].quoted {
			f = strings.TrimSuffix(f, "\r")
		}
		got.fields[i] = strings.ReplaceAll(f, "\r\n", "\n")
	}
	if open && errors.Is(got.err, stdcsv.ErrQuote) {
		got.line, got.column = want.line, want.column
	}
	return got
}

func quotedBytes(t require.TestingT, text []byte, s *scanner, got scanned) {
	for i, value := range got.fields {
		if at := s.fields[i].at; !s.lazy && at < len(text) && text[at] == '"' {
			require.True(t, bytes.HasPrefix(text[at:], []byte(`"`+strings.ReplaceAll(value, `"`, `""`)+`"`)), "%q is not the field at %d of %q", value, at, text)
		}
	}
}

func TestAScannerOfCarriageReturnsCountsLinesAndKeepsQuotedBytes(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{"a", "\"x\r\ny\"", "\"\r\"", "\"\n\"", "\"\"", "\"", ",", "\r", "\r\n", "\n", "#"})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(pieces, 0, 20).Draw(t, "text"), ""))
		lazy := rapid.Bool().Draw(t, "lazy")
		s := &scanner{quote: '"', comma: []byte(","), comment: []byte("#"), lazy: lazy, cr: true}
		for {
			got := ours(text, s, len(text))
			quotedBytes(t, text, s, got)
			lines, begin := s.linesIn(text[:got.end])
			if got.err == nil {
				require.Equal(t, s.before+s.lines, lines+map[bool]int{true: 1}[begin < got.end], "%q", text)
			}
			for there := range text {
				if cut := ours(text, s, there); !errors.Is(cut.err, errShort) {
					require.Equal(t, got, cut, "%q, of which %d bytes are there", text, there)
				}
			}
			if errors.Is(got.err, io.EOF) {
				return
			}
			text = text[got.end:]
		}
	})
}

func TestAScannerReadsWhatEncodingCsvReads(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{"a", "b", " ", "\"", "\"\"", ",", ";", "§", "\n", "\r\n", "\r", "#", "é", "\xff", "\xc2", "\u00a0", "\t", "\x00"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 30).Draw(t, "text"), "")
		s := &scanner{
			quote: '"',
			comma: []byte(rapid.SampledFrom([]string{",", ";", "§", "\t"}).Draw(t, "delimiter")), comment: []byte(rapid.SampledFrom([]string{"", "#", "é"}).Draw(t, "comment")),
			lazy: rapid.Bool().Draw(t, "lazy"), trim: rapid.Bool().Draw(t, "trim"),
		}
		if string(s.comma) == "\t" { // as the reader does
			s.trim = false
		}
		compareScans(t, []byte(text), s)
	})
}

func FuzzScan(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "\"a\r\n\"\"\",b\r", "a,\"b\n", "#\n\n a ,\" b\" ,\n", "\"a\"b,c\nd", "a\"b,\"\"\n", "\"\n\r", "\"\xc3\",\"\xa9\"\n"} {
		f.Add([]byte(seed), true, false, true)
	}
	f.Fuzz(func(t *testing.T, text []byte, comments, lazy, trim bool) {
		if len(text) > 200 {
			return
		}
		s := &scanner{quote: '"', comma: []byte(","), lazy: lazy, trim: trim}
		if comments {
			s.comment = []byte("#")
		}
		compareScans(t, text, s)
	})
}
