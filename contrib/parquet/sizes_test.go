//test:plain

package parquet

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

func TestAPageThatClaimsMoreThanItCanHaveIsNotAllocated(t *testing.T) {
	t.Parallel()
	good := format.PageHeader{CompressedPageSize: 100, UncompressedPageSize: 200}
	good.DataPageHeader.Valid, good.DataPageHeader.V.NumValues = true, 10
	for want, change := range map[string]func(h *format.PageHeader){
		"": func(*format.PageHeader) {},
		"claims 101 bytes, more than its column has": func(h *format.PageHeader) { h.CompressedPageSize++ },
		"claims 10 values in 2147483647 bytes":       func(h *format.PageHeader) { h.UncompressedPageSize = 1<<31 - 1 },
		"claims 2147483647 values":                   func(h *format.PageHeader) { h.DataPageHeader.V.NumValues = 1<<31 - 1 },
	} {
		h := good
		change(&h)
		var protocol thrift.CompactProtocol
		head, err := thrift.Marshal(&protocol, h)
		require.NoError(t, err)
		text := append(append([]byte("PAR1"), head...), make([]byte, 100)...)
		for _, size := range []int{1, 7, 1000} { // a header may be in several reads
			s := &sized{in: bytes.NewReader(text), next: 4, end: int64(len(text)), width: 1}
			_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.NewSectionReader(s, 4, int64(len(text))-4), make([]byte, size))
			if want == "" {
				require.NoError(t, err)
				require.EqualValues(t, len(text), s.next)
				continue
			}
			require.ErrorContains(t, err, want)
		}
	}
}

func TestAFooterLongerThanItsFileIsNotAllocated(t *testing.T) {
	t.Parallel()
	path, text := copyOf(t, "pyarrow2.parquet")
	binary.LittleEndian.PutUint32(text[len(text)-8:], 1<<32-1)
	damaged(t, path, text)
	_, err := readAll(t, path, itemOf(t, kinds()...))
	require.ErrorContains(t, err, "its footer claims 4294967295 bytes")
}
