package draft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func (s *Shape) csvConfig(delimiter string) csv.SampleConfig {
	return csv.SampleConfig{Path: s.Path, Delimiter: delimiter, NoHeader: s.NoHeader, SkipLines: s.SkipLines, LazyQuotes: s.LazyQuotes, Encoding: filestream.EncodingName(s.Encoding)}
}

func (s *Shape) sampleCSV(ctx context.Context) (columns []*column, err error) {
	if s.Delimiter == "" {
		if s.Delimiter, err = s.findDelimiter(ctx); err != nil {
			return nil, err
		}
	}
	in, err := csv.OpenSample(ctx, s.csvConfig(s.Delimiter))
	if err != nil {
		return nil, s.badEncoding(ctx, err)
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	s.head = in.Head()
	given, all := names{}, candidates(s.Delimiter != ",")
	for _, from := range in.Columns() {
		columns = append(columns, s.column(given.of(from), from, all))
	}
	if err := s.byPlace(in, columns); err != nil {
		return nil, err
	}
	if err := s.readCells(ctx, in, columns); err != nil {
		return nil, err
	}
	if s.Rows == 0 && s.Whole {
		s.note("the file has a header but no row: every field is a text that may be null")
	}
	return columns, nil
}

func (s *Shape) byPlace(in *csv.Sample, columns []*column) error {
	if s.NoHeader {
		return nil
	}
	count, wrong := map[string]int{}, ""
	for _, name := range in.Columns() {
		count[name]++
	}
	for i, c := range columns {
		if c.unnamed = c.from == "" || count[c.from] > 1; !c.unnamed || wrong != "" {
			continue
		}
		wrong = fmt.Sprintf("column %q of its header is there twice", c.from)
		if c.from == "" {
			wrong = fmt.Sprintf("column %d of its header has no name", i+1)
		}
	}
	if wrong == "" {
		return nil
	}
	if strings.ContainsAny(s.head, "\r\n") {
		return fmt.Errorf("%s, but its header contains a line end, so a job cannot skip it as one line: fix the header, or skip its lines with --skip-lines N and --no-header", wrong)
	}
	s.NoHeader, s.SkipLines = true, int(in.Line())
	s.note("%s: fields are read by position", wrong)
	return nil
}

func (s *Shape) readCells(ctx context.Context, in *csv.Sample, columns []*column) error {
	other := misfits{}
	for !s.isRead(in.Offset()) {
		cells, err := in.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			s.Whole = true
			s.noteWidths(other)
			return nil
		case item.IsConsumed(err):
			s.broken.add(err)
			continue
		case err != nil:
			return err
		}
		if len(cells) != len(columns) {
			other.add(fmt.Errorf("line %d has %d %s, not %d", in.Line(), len(cells), plural(len(cells), "field", "fields"), len(columns)))
		}
		for i, c := range cells[:min(len(cells), len(columns))] {
			if !utf8.ValidString(c.Text) {
				found, line, offset := in.Damage()
				return s.notUTF8(ctx, in.NotValid(), found, line, offset)
			}
			if c.Text == "" && !c.Quoted {
				columns[i].null()
			} else {
				columns[i].add(c.Text, inCell, in.Line())
			}
		}
		if s.Rows++; len(cells) == len(columns) {
			s.keep(in.Text)
		}
	}
	s.noteWidths(other)
	return nil
}

func (s *Shape) doubtHeader(columns []*column) {
	if s.Format != formatCSV || s.options.NoHeader || s.options.Header {
		return
	}
	for _, c := range columns {
		best, _ := c.best()
		if best == nil {
			continue
		}
		if is, _ := best.returns(c.from, inCell); is {
			s.doubt = fmt.Sprintf("its first record may be data: %.40q is of type %s, like the values below it. --no-header reads it as data, --header as names", c.from, best.Kind)
			s.note("%s", s.doubt)
			return
		}
	}
}

func (s *Shape) sure() error {
	if s.doubt != "" {
		return fmt.Errorf("%s: %s", s.Path, s.doubt)
	}
	return nil
}

func (s *Shape) noteWidths(other misfits) {
	if other.count > 0 {
		s.note("%s %s a different number of fields: %s", humanize.Count(other.count), plural(other.count, "record has", "records have"), other.first)
	}
}

var sepLine = regexp.MustCompile(`^"?sep=([^\r\n"])"?\r?\n`)

const sniffRows = 100

func (s *Shape) findDelimiter(ctx context.Context) (string, error) {
	if strings.EqualFold(filepath.Ext(filestream.WithoutSuffix(s.Path)), ".tsv") {
		return "tab", nil
	}
	if text, err := s.beginning(ctx); err == nil && s.SkipLines == 0 {
		if said := sepLine.FindSubmatch(text); said != nil {
			return strings.ReplaceAll(string(said[1]), "\t", "tab"), nil
		}
	}
	best, same, most := ",", 0.0, 1
	for _, d := range []string{",", ";", "tab", "|"} {
		share, width, err := s.widths(ctx, d)
		if err != nil {
			return "", s.badEncoding(ctx, err)
		}
		if width > 1 && (share > same || share == same && width > most) {
			best, same, most = d, share, width
		}
	}
	if best == "tab" || best == "," {
		return best, nil
	}
	if share, width, err := s.widths(ctx, best+best); err == nil && share >= same && 2*width-1 == most {
		return best + best, nil
	} else if err != nil {
		return "", s.badEncoding(ctx, err)
	}
	return best, nil
}

func (s *Shape) widths(ctx context.Context, delimiter string) (share float64, width int, err error) {
	in, err := csv.OpenSample(ctx, s.csvConfig(delimiter))
	if item.IsConsumed(err) { // the header cannot be read with it
		return 0, 0, nil
	} else if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	width = len(in.Columns())
	all, same := 1, 1
	for all <= sniffRows {
		cells, err := in.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil && !item.IsConsumed(err) {
			return 0, 0, err
		}
		if all++; err == nil && len(cells) == width {
			same++
		}
	}
	return float64(same) / float64(all), width, nil
}
