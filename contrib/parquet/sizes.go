package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The library allocates the sizes in the header of a page before it looks at the content: a damaged file
// would take all memory.
const (
	mostBytes  = 1 << 30 // of a page, uncompressed
	mostValues = 1 << 26
	headBytes  = 64 << 10 // at least, of a header that a read ends in
)

// sized reads a column chunk, and checks the headers of its pages on the way.
type sized struct {
	in    io.ReaderAt
	next  int64 // the first header that is not checked; math.MaxInt64 after one that is none
	end   int64
	width int64 // of a value of fixed length
}

// pagesOf returns the pages of a chunk in a file of that size.
func pagesOf(chunk pq.ColumnChunk, about format.ColumnMetaData, in io.ReaderAt, size int64) (pq.Pages, error) {
	from, ok := chunk.(*pq.FileColumnChunk)
	if !ok {
		return nil, fmt.Errorf("a column chunk is a %T", chunk)
	}
	start := about.DataPageOffset
	if about.DictionaryPageOffset != 0 {
		start = about.DictionaryPageOffset
	}
	if start < 0 || about.TotalCompressedSize < 0 || start > size || about.TotalCompressedSize > size-start {
		return nil, fmt.Errorf("a column of %d bytes at byte %d is outside of the file, which has %d", about.TotalCompressedSize, start, size)
	}
	s := &sized{in: in, next: start, end: start + about.TotalCompressedSize}
	if t := chunk.Type(); t.Kind() == pq.FixedLenByteArray {
		s.width = int64(t.Length())
	}
	return from.PagesFrom(s), nil
}

func (s *sized) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.in.ReadAt(p, off)
	for until := min(off+int64(n), s.end); s.next < until; {
		if err := s.check(p[:n], off); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (s *sized) check(read []byte, off int64) error {
	var h format.PageHeader
	length, ok := 0, false
	if s.next >= off {
		length, ok = parseHeader(read[s.next-off:], &h)
	}
	if !ok {
		head := make([]byte, min(headBytes, s.end-s.next))
		n, err := s.in.ReadAt(head, s.next)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		h = format.PageHeader{}
		if length, ok = parseHeader(head[:n], &h); !ok {
			s.next = math.MaxInt64
			return nil // the library reports it, if it needs a page from here on
		}
	}
	at, body := s.next, s.next+int64(length)
	values := int64(max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues))
	switch {
	case h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > s.end-body:
		return fmt.Errorf("the page at byte %d claims %d bytes, more than its column has", at, h.CompressedPageSize)
	case h.UncompressedPageSize > mostBytes, values > mostValues, values*max(1, s.width) > mostBytes:
		return fmt.Errorf("the page at byte %d claims %d values in %d bytes; at most %d in %d are read", at, values, h.UncompressedPageSize, mostValues, mostBytes)
	}
	s.next = body + int64(h.CompressedPageSize)
	return nil
}

func parseHeader(text []byte, h *format.PageHeader) (length int, ok bool) {
	var protocol thrift.CompactProtocol
	r := protocol.NewReaderFromBytes(text)
	err := recovered(func() error { return thrift.NewDecoder(r).Decode(h) })
	return r.BytesRead(), err == nil
}
