//test:plain

package csv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestRecordsAreAppendedUnderTheHeaderThatIsThere(t *testing.T) {
	t.Parallel()
	item := texts(t, "a", "b c")
	for _, c := range []struct {
		was, want string
		cfg       writerConfig
	}{
		{"", "a,b c\n1,2\n", writerConfig{Header: true}},
		{"a,b c\nx,y\n", "a,b c\nx,y\n1,2\n", writerConfig{Header: true}},
		{"a,b c\nx,y", "a,b c\nx,y\n1,2\n", writerConfig{Header: true}},
		{"a,b c", "a,b c\n1,2\n", writerConfig{Header: true}},
		{"a,b c\r\nx,y", "a,b c\r\nx,y\r\n1,2\r\n", writerConfig{Header: true, LineEnd: "crlf"}},
		{"\xEF\xBB\xBFa,b c\n", "\xEF\xBB\xBFa,b c\n1,2\n", writerConfig{Header: true, Encoding: "utf-8-bom"}},
		{"", "\xEF\xBB\xBFa,b c\n1,2\n", writerConfig{Header: true, Encoding: "utf-8-bom"}},
		{"x,y\n", "x,y\n1,2\n", writerConfig{}},
		{"\xff\xfea\x00", "\xff\xfea\x00\n\x001\x00,\x002\x00\n\x00", writerConfig{Encoding: "utf-16"}},
	} {
		c.cfg.Path, c.cfg.Append = file(t, "out.csv", c.was), true
		got, err := write(t, c.cfg, item, []string{"1", "2"})
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		info, err := os.Stat(c.cfg.Path)
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
	none := writerConfig{Path: filepath.Join(t.TempDir(), "new.csv"), Append: true, Header: true}
	got, err := write(t, none, item, []string{"1", "2"})
	require.NoError(t, err)
	require.Equal(t, "a,b c\n1,2\n", got)
}

func TestAFileWithAnotherHeaderIsNotAppendedTo(t *testing.T) {
	t.Parallel()
	for was, want := range map[string]string{
		"a\nx\n":      `its header is "a", but this step's header is "a,b"`,
		"b,a\n1,2\n":  `its header is "b,a", but this step's header is "a,b"`,
		"a;b\n1;2":    `its header is "a;b", but this step's header is "a,b"`,
		"a,bc\n1,2\n": `its header is "a,bc", but this step's header is "a,b"`,
	} {
		path := file(t, "out.csv", was)
		w, err := newWriter(writerConfig{Path: path, Header: true, Append: true}, registry.BuildContext{In: texts(t, "a", "b")})
		require.NoError(t, err)
		c := w.Component().(*writer)
		err = c.Open(t.Context(), nil)
		require.ErrorContains(t, err, "csv: cannot append to "+path+": "+want)
		require.False(t, exception.IsSkippable(err))
		require.NoError(t, c.Close(t.Context()))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, was, string(data))
		parts, err := filepath.Glob(path + filestream.PartSuffix + "*")
		require.NoError(t, err)
		require.Empty(t, parts)
	}
}

// After an open quote the new records would be part of the field, and other
// line ends would be part of their last fields, for readers that accept only
// one kind.
func TestAFileThatCannotBeFollowedIsNotAppendedTo(t *testing.T) {
	t.Parallel()
	open := func(line string) string {
		return "the quote that opens a field in line " + line + " is not closed: appended records would belong to that field"
	}
	for _, c := range []struct {
		was, want string
		cfg       writerConfig
	}{
		{"a,b\nx,\"y\n", open("2"), writerConfig{}},
		{"a,b\n1,2\nx,\"y\n\"\",z", open("3"), writerConfig{}},
		{"\"a", open("1"), writerConfig{}},
		{"a,b\nx,'y\n", open("2"), writerConfig{Quote: "'"}},
		{"a,b\nx,\"y\\\"\n", open("2"), writerConfig{Escape: "\\"}},
		{"a||b\nx||\"y||\n", open("2"), writerConfig{Delimiter: "||"}},
		{"a,b\r\nx,y\r\n", "its lines end with CRLF, but this step's with LF: set line_end: crlf", writerConfig{}},
		{"a,b\nx,\"y\r\n\"", "its lines end with LF, but this step's with CRLF: set line_end: lf", writerConfig{LineEnd: "crlf"}},
		{"a,b\rx,\"y\n\"\r", "its lines end with CR, which writers do not support: change them to LF or CRLF first", writerConfig{}},
	} {
		for _, name := range []string{"out.csv", "out.csv.gz"} {
			was := c.was
			if name != "out.csv" {
				was = zip(t, was)
			}
			c.cfg.Path, c.cfg.Append = file(t, name, was), true
			w, err := newWriter(c.cfg, registry.BuildContext{In: texts(t, "a", "b")})
			require.NoError(t, err)
			err = w.Component().(*writer).Open(t.Context(), nil)
			require.NoError(t, w.Component().(*writer).Close(t.Context()))
			require.ErrorContains(t, err, "csv: cannot append: "+c.cfg.Path+": "+c.want, "%q", c.was)
			require.False(t, exception.IsSkippable(err))
			data, err := os.ReadFile(c.cfg.Path)
			require.NoError(t, err)
			require.Equal(t, was, string(data))
		}
	}
	for was, cfg := range map[string]writerConfig{
		"a,b\nx \"y,\"z\"\n":                {},
		"a,b\nx,\"y\"\"\"\n\"\"\"\",\"\"\n": {},
		"a,b\nx,\"y\n":                      {Quote: "'"},
		"a,b\nx,\"y\\\"\"\n":                {Escape: "\\"},
		"a|b\nx||\"y\n":                     {Delimiter: "|||"},
		"a,b\nx,y\r\nz,\"\r\"\n":            {},
		"a,b\r\nx,\"y\n\"\r\nz,z\r\n":       {LineEnd: "crlf"},
	} {
		cfg.Path, cfg.Append = file(t, "out.csv", was), true
		got, err := write(t, cfg, texts(t, "a", "b"), []string{"1", "2"})
		require.NoError(t, err, "%q", was)
		require.True(t, strings.HasPrefix(got, was), "%q", got)
	}
}
