package text

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type aheadCase struct {
	of   item.Type
	rows []item.Row
	make func(path string, use registry.BuildContext) (item.Writer, error)
}

func aheadCases(t *testing.T) map[string]aheadCase {
	cases := map[string]aheadCase{}
	lines := []item.Row{}
	line, err := lineType("line")
	require.NoError(t, err)
	for i := range 40 {
		lines = append(lines, row.New(line.Schema(), []row.Value{row.StringValue(fmt.Sprintf("日本 %d", i))}))
	}
	var moved [][3]string
	var entered [][3]string
	for i := range 40 {
		moved = append(moved, [3]string{fmt.Sprint(i), fmt.Sprintf("%d.50", i), "1.5"})
		entered = append(entered, [3]string{fmt.Sprintf("Cß%d", i/7), fmt.Sprint(i), fmt.Sprintf("%d.25", i)})
	}
	for _, encoding := range []filestream.EncodingName{"", "shift-jis", "gb18030", "utf-16"} {
		cases["lines "+string(encoding)] = aheadCase{line, lines, func(path string, use registry.BuildContext) (item.Writer, error) {
			return newLinesWriter(linesWriterConfig{Path: path, Encoding: encoding}, use)
		}}
	}
	for _, encoding := range []filestream.EncodingName{"", "latin1", "ibm1047"} {
		for _, length := range []int{0, 30} {
			name := fmt.Sprintf("%s %d", encoding, length)
			cases["fixed "+name] = aheadCase{transfer(t), transfers(t, moved...), func(path string, use registry.BuildContext) (item.Writer, error) {
				return newFixedWriter(fixedWriterConfig{Path: path, Columns: transferColumns(), Record: "D", Header: "H", Trailer: transferTrailer(), Encoding: encoding, Length: length}, use)
			}}
			cases["records "+name] = aheadCase{entry(t), entries(t, entered...), func(path string, use registry.BuildContext) (item.Writer, error) {
				return newFixedWriter(fixedWriterConfig{Path: path, Records: writtenTypes(), Encoding: encoding, Length: length}, use)
			}}
		}
	}
	return cases
}

func TestAFileIsTheSameIfItsChunksAreEncodedAhead(t *testing.T) {
	t.Parallel()
	for name, c := range aheadCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.written(t, false), c.written(t, true))
		})
	}
}

// written returns the file of all rows. Ahead: each chunk is encoded while the one before it is written.
func (c aheadCase) written(t *testing.T, ahead bool) string {
	path := filepath.Join(t.TempDir(), "out.txt")
	w, err := c.make(path, itemtest.Use(c.of, core.Attempt{Exclusive: true}))
	require.NoError(t, err)
	file, encoder := w.Component().(*writer), w.(itemextra.Encoder)
	require.NoError(t, file.Open(t.Context(), nil))
	require.True(t, file.WritesAhead())
	encodings := []item.Encoding{encoder.NewEncoding(), encoder.NewEncoding()}
	chunks := itemtest.Chunks(c.rows[:7], c.rows[7:9], c.rows[9:10], c.rows[10:])
	require.NoError(t, encodings[0].Encode(chunks[0]))
	for i, chunk := range chunks {
		next := make(chan error, 1)
		go func() {
			var err error
			if i+1 < len(chunks) {
				err = encodings[(i+1)%2].Encode(chunks[i+1])
			}
			next <- err
		}()
		if ahead {
			done, err := encoder.WriteEncoded(t.Context(), encodings[i%2])
			require.NoError(t, err)
			require.True(t, done)
		} else {
			require.NoError(t, w.Write(t.Context(), chunk))
		}
		require.NoError(t, <-next)
		require.NoError(t, file.Prepare(t.Context()))
		_, err := file.Position()
		require.NoError(t, err)
		require.NoError(t, file.Release(t.Context()))
	}
	require.NoError(t, file.Finish(t.Context()))
	require.NoError(t, file.Close(t.Context()))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

func TestAnItemThatCannotBeEncodedAheadIsNamedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.txt")
	w, err := newFixedWriter(fixedWriterConfig{Path: path, Records: writtenTypes()}, itemtest.Use(entry(t), core.Attempt{Exclusive: true}))
	require.NoError(t, err)
	require.NoError(t, w.Component().(*writer).Open(t.Context(), nil))
	encoder := w.(itemextra.Encoder)
	encoding := encoder.NewEncoding()
	chunks := itemtest.Chunks(entries(t, [3]string{"ACME", "1", "12345.67"}), entries(t, [3]string{"TOOLONG", "7", "1"}))
	require.ErrorContains(t, encoding.Encode(chunks[0]), "field amount: 7 characters, but its column has 6")
	require.ErrorContains(t, w.Write(t.Context(), chunks[0]), "field amount: 7 characters, but its column has 6")
	require.NoError(t, encoding.Encode(chunks[1]), "a header depends on the records before it")
	_, err = encoder.WriteEncoded(t.Context(), encoding)
	require.ErrorContains(t, err, "the header B: field company: 7 characters, but its column has 6")
	require.NoError(t, w.Component().(*writer).Close(t.Context()))
}
