package filestream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/surfin-batch/surfin/internal/partcount"
)

// Cut is a place between two records.
type Cut struct {
	Offset int64
	Lines  int64 // before it
}

// Quotes describes a text whose records can be found without parsing them: a field in quotes begins and ends next
// to a comma or a line end, and a quote in it is doubled.
type Quotes struct {
	Quote, Comma byte // Quote 0: every line is a record
	// Longest is the size from which a record counts as malformed.
	Longest int64
}

// ErrMalformed reports that a text has records that only a reader can tell apart.
var ErrMalformed = errors.New("the text is malformed")

func checkDivisible(in *Input) error {
	if in.plain {
		return nil
	}
	switch form := in.form().name; {
	case in.file == nil:
		return errors.New("the standard input cannot be divided into parts: it can be read only once")
	case form != "":
		return errStream(form)
	}
	return errStream("in " + in.encoding)
}

// leastPart is the size in bytes of the smallest part that is worth its overhead.
const leastPart = 1 << 20

// PartsFor returns the number of parts for the file.
func PartsFor(in *Input, want partcount.Wanted) int { return want.Of(in.print.Size, leastPart) }

// Divide returns the starts of n parts of the text from a cut on, or fewer, and the end. It fails with ErrMalformed if
// a record is not as of says.
func Divide(ctx context.Context, in *Input, from Cut, n int, of Quotes) ([]Cut, error) {
	if err := checkDivisible(in); err != nil {
		return nil, err
	}
	stretches := make([]stretch, n)
	size := in.print.Size
	var next sync.Mutex
	taken := 0
	take := func() int {
		next.Lock()
		defer next.Unlock()
		taken++
		return taken - 1
	}
	errs := make([]error, n)
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for k := take(); k < n; k = take() {
				s := &stretches[k]
				*s = stretch{of: of, first: from.Offset, size: size, begin: Share(in, from, k, n), end: Share(in, from, k+1, n)}
				errs[k] = s.read(ctx, in)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return cutsOf(from, stretches)
}

// Share returns the offset at which the part k of n would begin without regard to records.
func Share(in *Input, from Cut, k, n int) int64 { return share(from.Offset, in.print.Size, k, n) }

func share(from, size int64, k, n int) int64 {
	whole := max(size-from, 0)
	return from + whole/int64(n)*int64(k) + whole%int64(n)*int64(k)/int64(n)
}

func cutsOf(from Cut, stretches []stretch) ([]Cut, error) {
	cuts, lines, inside := []Cut{from}, from.Lines, 0
	for k, s := range stretches {
		if s.malformed[inside] {
			return nil, ErrMalformed
		}
		if cut := s.cut[inside]; k > 0 && cut.Offset > 0 && cut.Offset < s.size {
			cuts = append(cuts, Cut{cut.Offset, lines + cut.Lines})
		}
		lines += s.lines
		inside ^= s.quotes & 1
	}
	if inside == 1 {
		return nil, ErrMalformed
	}
	return append(cuts, Cut{stretches[len(stretches)-1].size, lines}), nil
}

// stretch is a piece of the text that is read without knowing whether it begins inside quotes. Results
// that depend on it are kept for both cases, outside first.
type stretch struct {
	of          Quotes
	first, size int64 // of the whole text
	begin, end  int64

	quotes    int
	lines     int64
	malformed [2]bool
	cut       [2]Cut   // after the first record that ends here; Lines counts from begin
	ended     [2]bool  // a record ended in this block, or nothing depends on it
	last      [2]int64 // where
}

// A quote is judged by its neighbours, a line end by the two bytes before it.
const around = 2

const divideBytes = 256 << 10

func (s *stretch) read(ctx context.Context, in *Input) error {
	begin := max(s.begin-around, s.first)
	from := in.file.From(begin)
	defer from.Close() //nolint:errcheck // it is only read
	step := int64(divideBytes)
	if s.of.Quote != 0 {
		step = max(1, min(step, s.of.Longest/4))
	}
	s.last = [2]int64{s.begin, s.begin}
	buf := make([]byte, 0, step+2*around)
	base, done := begin, s.begin // offsets of buf[0], and of the first byte that is not counted yet
	for done < s.end && !(s.malformed[0] && s.malformed[1]) {
		if err := ctx.Err(); err != nil {
			return err
		}
		want := min(min(done+step, s.end)+around, s.size) - base
		have := int64(len(buf))
		buf = buf[:want]
		if _, err := io.ReadFull(from, buf[have:]); err != nil {
			return err
		}
		to := min(done+step, s.end)
		s.block(buf, int(done-base), int(to-base), base)
		done = to
		keep := max(done-around, begin) - base
		buf = buf[:copy(buf, buf[keep:])]
		base += keep
	}
	return nil
}

func (s *stretch) block(text []byte, from, to int, base int64) {
	s.ended = s.malformed
	for at := from; ; {
		outside := s.quotes & 1 // the case in which the text here is outside of quotes
		n := -1
		if s.of.Quote != 0 {
			n = bytes.IndexByte(text[at:to], s.of.Quote)
		}
		end := to
		if n >= 0 {
			end = at + n
		}
		if !s.ended[outside] {
			s.findEnd(outside, text, at, end, from, base)
		}
		if n < 0 {
			break
		}
		s.malformed[outside] = s.malformed[outside] || !s.opens(text, end, base)
		s.malformed[1-outside] = s.malformed[1-outside] || !s.closes(text, end, base)
		s.quotes++
		at = end + 1
	}
	for inside, last := range s.last {
		s.malformed[inside] = s.malformed[inside] || s.of.Quote != 0 && base+int64(to)-last > s.of.Longest/2
	}
	s.lines += int64(bytes.Count(text[from:to], []byte{'\n'}))
	if base+int64(to) == s.size && text[to-1] != '\n' {
		s.lines++
	}
}

// Blank lines belong to the record after them.
func (s *stretch) findEnd(outside int, text []byte, from, to, block int, base int64) {
	for at := from; at < to; {
		n := bytes.IndexByte(text[at:to], '\n')
		if n < 0 {
			return
		}
		at += n + 1
		if body := bytes.TrimSuffix(text[:at-1], []byte{'\r'}); len(body) == 0 || body[len(body)-1] == '\n' {
			continue
		}
		s.ended[outside], s.last[outside] = true, base+int64(at)
		if s.cut[outside].Offset == 0 {
			s.cut[outside] = Cut{base + int64(at), s.lines + int64(bytes.Count(text[block:at], []byte{'\n'}))}
		}
		return
	}
}

func (s *stretch) opens(text []byte, at int, base int64) bool {
	if base+int64(at) == s.first {
		return true
	}
	before := text[at-1]
	return before == '\n' || before == s.of.Comma || before == s.of.Quote
}

func (s *stretch) closes(text []byte, at int, base int64) bool {
	last := func(at int) bool { return base+int64(at) == s.size }
	if last(at + 1) {
		return true
	}
	switch after := text[at+1]; after {
	case '\n', s.of.Comma, s.of.Quote:
		return true
	case '\r':
		return last(at+2) || text[at+2] == '\n'
	}
	return false
}

// DivideRecords divides records of a size.
func DivideRecords(in *Input, from Cut, n, size int) ([]Cut, error) {
	if err := checkDivisible(in); err != nil {
		return nil, err
	}
	whole := (in.print.Size - from.Offset) / int64(size)
	var cuts []Cut
	for k := range n {
		at := share(0, whole, k, n)
		if k > 0 && at == share(0, whole, k-1, n) {
			continue
		}
		cuts = append(cuts, Cut{from.Offset + at*int64(size), from.Lines + at})
	}
	return append(cuts, Cut{in.print.Size, from.Lines + whole}), nil
}
