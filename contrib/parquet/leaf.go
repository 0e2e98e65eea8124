package parquet

import (
	"errors"
	"io"

	pq "github.com/parquet-go/parquet-go"
)

const batch = 512

// leaf delivers the values of one leaf of a row group.
type leaf struct {
	pages    pq.Pages
	page     pq.Page
	values   pq.ValueReader
	repeated bool // a row may have several values, also in several pages
	buf      []pq.Value
	next     int
	row      []pq.Value // of the current row, of a column that is not simple
	at       int
}

func openLeaf(pages pq.Pages, repeated bool, skip int64) (*leaf, error) {
	l := &leaf{pages: pages, repeated: repeated}
	if skip == 0 {
		return l, nil
	}
	if !repeated {
		return l, l.pages.SeekToRow(skip)
	}
	for range skip { // a row of an old file may be in two pages, for which a seek is not exact
		if err := l.readRow(); err != nil {
			return l, err
		}
	}
	return l, nil
}

// one returns the next value, which is valid until the next call.
func (l *leaf) one() (pq.Value, error) {
	if l.next == len(l.buf) {
		if err := l.fill(); err != nil {
			return pq.Value{}, err
		}
	}
	l.next++
	return l.buf[l.next-1], nil
}

// readRow reads all values of the next row.
func (l *leaf) readRow() error {
	l.row, l.at = l.row[:0], 0
	for {
		if l.next == len(l.buf) {
			err := l.fill()
			if errors.Is(err, io.ErrUnexpectedEOF) && len(l.row) > 0 {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if v := l.buf[l.next]; len(l.row) > 0 && v.RepetitionLevel() == 0 {
			return nil
		}
		l.row = append(l.row, l.buf[l.next])
		l.next++
		if !l.repeated {
			return nil
		}
	}
}

func (l *leaf) fill() error {
	if l.buf == nil {
		l.buf = make([]pq.Value, batch)
	}
	l.next, l.buf = 0, l.buf[:0]
	for {
		if l.values == nil {
			page, err := l.pages.ReadPage()
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF // a row group says how many rows it has
			}
			if err != nil {
				return err
			}
			l.page, l.values = page, page.Values()
		}
		n, err := l.values.ReadValues(l.buf[:cap(l.buf)])
		if l.buf = l.buf[:n]; errors.Is(err, io.EOF) {
			l.values = nil
		} else if err != nil {
			return err
		}
		if n > 0 {
			return nil
		}
		l.release()
	}
}

// release returns the memory of a page after all its values are converted. Values of a repeated column may be needed
// longer: they leave their page to the garbage collector.
func (l *leaf) release() {
	if l.page != nil && l.values == nil && !l.repeated {
		pq.Release(l.page)
	}
	if l.values == nil {
		l.page = nil
	}
}

func (l *leaf) close() error {
	l.page, l.values = nil, nil
	return l.pages.Close()
}
