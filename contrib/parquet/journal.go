package parquet

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// journal delivers the rows of a part as the values of its columns. It holds the rows of one batch.
type journal struct {
	in      *bufio.Reader
	columns []*target
	values  [][]pq.Value
	texts   []byte
	bytes   int64 // of the batch, about
}

const (
	batchRows  = 512
	batchBytes = 1 << 20
)

// next reads the next batch; 0 rows at the end.
func (j *journal) next() (rows int, err error) {
	j.texts, j.bytes = nil, 0 // the values that were delivered have the old one
	for i := range j.values {
		j.values[i] = j.values[i][:0]
	}
	for rows < batchRows && j.bytes < batchBytes {
		if _, err := j.in.Peek(1); errors.Is(err, io.EOF) {
			return rows, nil
		}
		for i, c := range j.columns {
			if err := j.read(i, c); err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return rows, fmt.Errorf("the journal of rows: %w", err)
			}
		}
		rows++
	}
	return rows, nil
}

func (j *journal) read(i int, c *target) error {
	level := 0
	if c.optional {
		known, err := j.in.ReadByte()
		if err != nil {
			return err
		}
		if known == 0 {
			j.add(i, pq.Value{}, 0, 0)
			return nil
		}
		level++
	}
	if c.list {
		return j.list(i, c, level)
	}
	v, err := j.value(c)
	j.add(i, v, 0, level)
	return err
}

func (j *journal) add(i int, v pq.Value, again, level int) {
	j.bytes += 8
	j.values[i] = append(j.values[i], v.Level(again, level, i))
}

func (j *journal) list(i int, c *target, level int) error {
	n, err := binary.ReadUvarint(j.in)
	if err == nil && n == 0 {
		j.add(i, pq.Value{}, 0, level)
	}
	for at := uint64(0); at < n && err == nil; at++ {
		again := 1
		if at == 0 {
			again = 0
		}
		var known byte
		if known, err = j.in.ReadByte(); err != nil {
			return err
		}
		var v pq.Value
		if known == 0 {
			j.add(i, v, again, level+1)
			continue
		}
		v, err = j.value(c)
		j.add(i, v, again, level+2)
	}
	return err
}

func (j *journal) value(c *target) (pq.Value, error) {
	switch kind := c.leaf.Type().Kind(); kind {
	case pq.Boolean:
		b, err := j.in.ReadByte()
		return pq.BooleanValue(b == 1), err
	case pq.Int32, pq.Int64:
		n, err := binary.ReadVarint(j.in)
		if kind == pq.Int32 {
			return pq.Int32Value(int32(n)), err
		}
		return pq.Int64Value(n), err
	case pq.Double:
		var b [8]byte
		_, err := io.ReadFull(j.in, b[:])
		return pq.DoubleValue(math.Float64frombits(binary.LittleEndian.Uint64(b[:]))), err
	case pq.FixedLenByteArray:
		text, err := j.text(uint64(c.width))
		return pq.FixedLenByteArrayValue(text), err
	default:
		n, err := binary.ReadUvarint(j.in)
		if err != nil {
			return pq.Value{}, err
		}
		text, err := j.text(n)
		return pq.ByteArrayValue(text), err
	}
}

func (j *journal) text(n uint64) ([]byte, error) {
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("a value of %d bytes", n)
	}
	if free := cap(j.texts) - len(j.texts); uint64(free) < n {
		j.texts = make([]byte, 0, max(batchBytes/8, n))
	}
	start := len(j.texts)
	j.texts = j.texts[:start+int(n)]
	j.bytes += int64(n)
	_, err := io.ReadFull(j.in, j.texts[start:])
	return j.texts[start:len(j.texts):len(j.texts)], err
}

// maker makes the parquet file of a journal.
type maker struct {
	path, compression    string
	columns              []*target
	groupRows, groupSize int64
	rows                 int64 // that the journal has
}

// Make implements filestream.Maker. It holds one row group.
func (m *maker) Make(ctx context.Context, from *bufio.Reader, to io.Writer) error {
	return recovered(func() error {
		codec, err := codecOf(m.compression)
		if err != nil {
			return err
		}
		out := pq.NewGenericWriter[any](to, schemaOf(m.columns), pq.Compression(codec), pq.DataPageVersion(1))
		rows, err := m.fill(ctx, out, &journal{in: from, columns: m.columns, values: make([][]pq.Value, len(m.columns))})
		switch {
		case err != nil:
			return err
		case rows != m.rows:
			return fmt.Errorf("the journal of %s has %d rows, but %d were committed", m.path, rows, m.rows)
		}
		return out.Close()
	})
}

func (m *maker) fill(ctx context.Context, out *pq.GenericWriter[any], from *journal) (rows int64, err error) {
	var inGroup, size int64
	for {
		if ctx.Err() != nil {
			return rows, context.Cause(ctx)
		}
		n, err := from.next()
		if err != nil || n == 0 {
			return rows, err
		}
		for i, c := range out.ColumnWriters() {
			if _, err := c.WriteRowValues(from.values[i]); err != nil {
				return rows, err
			}
		}
		rows, inGroup, size = rows+int64(n), inGroup+int64(n), size+from.bytes
		if inGroup < m.groupRows && size < m.groupSize {
			continue
		}
		if err := out.Flush(); err != nil {
			return rows, err
		}
		inGroup, size = 0, 0
	}
}

// Check implements filestream.Maker.
func (m *maker) Check(file io.ReaderAt, size int64) error {
	return recovered(func() error {
		f, err := pq.OpenFile(file, size, pq.SkipBloomFilters(true), pq.SkipPageIndex(true))
		switch {
		case err != nil:
			return err
		case f.NumRows() != m.rows:
			return fmt.Errorf("it has %d rows, but %d were written", f.NumRows(), m.rows)
		}
		return nil
	})
}

// recovered returns a panic of the library as an error.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

func codecOf(compression string) (compress.Codec, error) {
	switch compression {
	case "snappy":
		return &pq.Snappy, nil
	case "gzip":
		return &pq.Gzip, nil
	case "none":
		return &pq.Uncompressed, nil
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false), zstd.WithWindowSize(pageWindow))
	return oneEncoder{&pq.Zstd, e}, err
}

const pageWindow = 1 << 20

// oneEncoder has the memory of one encoder, with a window that fits a page. The library forgets its encoders at each
// garbage collection, and makes others with 8 MiB.
type oneEncoder struct {
	compress.Codec
	zstd *zstd.Encoder
}

func (c oneEncoder) Encode(dst, src []byte) ([]byte, error) {
	return c.zstd.EncodeAll(src, dst[:0]), nil
}
