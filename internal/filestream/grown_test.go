package filestream

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func appended(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestAFileIsReadAsFarAsItWentWhenItWasOpened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789\n", 30_000)
	utf16 := func(text string) string {
		enc, err := NewEncoder("utf-16")
		require.NoError(t, err)
		units, err := enc.Append(nil, []byte(text))
		require.NoError(t, err)
		return string(units)
	}
	for _, c := range []struct {
		name, content, more string
		cfg                 InputConfig
		grew                bool
	}{
		{"at the end of a line", long, "more\n", InputConfig{}, false},
		{"blank lines at the end", long + "\r\n\n", "more\n", InputConfig{}, false},
		{"in a line", long + "half", " a line\n", InputConfig{}, true},
		{"gzip, another member", gzipped(t, long), gzipped(t, "more\n"), InputConfig{Compression: "gzip"}, false},
		{"gzip, a line in two members", gzipped(t, long+"half"), gzipped(t, " a line\n"), InputConfig{Compression: "gzip"}, true},
		{"gzip, cut in a member", gzipped(t, long)[:200], gzipped(t, long)[200:], InputConfig{Compression: "gzip"}, true},
		{"utf-16, in a line", utf16(long + "half"), utf16(" a line\n"), InputConfig{Encoding: "utf-16le"}, true},
		{"utf-16, in a character", utf16(long) + "x", "\x00\n\x00", InputConfig{Encoding: "utf-16le"}, true},
	} {
		path := filepath.Join(t.TempDir(), "in.txt")
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		c.cfg.Path = path
		in, err := OpenInput(t.Context(), c.cfg, nil)
		require.NoError(t, err)
		size := in.print.Size
		appended(t, path, c.more)
		var lines int
		for {
			at := in.Start()
			if lines > 0 {
				at = in.keep
			}
			line, lineErr := in.Line(t.Context(), at, 1<<20)
			if err = lineErr; err != nil {
				break
			}
			in.Keep(at + int64(len(line)))
			lines++
		}
		if c.grew {
			require.ErrorContains(t, err, "the file grew while it was read: it had ", c.name)
			require.False(t, exception.IsSkippable(err), c.name)
		} else {
			require.ErrorIs(t, err, io.EOF, c.name)
			require.GreaterOrEqual(t, lines, 30_000, c.name)
		}
		at := in.Position(11)
		require.Equal(t, size, at.File.Size)
		require.NoError(t, in.Close())
		_, err = OpenInput(context.Background(), c.cfg, &at)
		require.ErrorContains(t, err, "changed since it was read: it grew from ", c.name)
	}
}

func TestAFileThatBecomesShorterWhileItIsReadFailsTheStep(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789\n", 30_000)
	for _, content := range []string{text, gzipped(t, text+strings.Repeat("x", 1<<20)), gzipped(t, strings.Repeat("y", 10))} {
		cfg := InputConfig{Path: filepath.Join(t.TempDir(), "in"), Compression: "none"}
		if content != text {
			cfg.Compression = "gzip"
		}
		require.NoError(t, os.WriteFile(cfg.Path, []byte(content+strings.Repeat(gzipped(t, "z"), 10_000)), 0o600))
		in, err := OpenInput(t.Context(), cfg, nil)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(cfg.Path, int64(len(content))))
		_, err = io.ReadAll(in)
		require.ErrorContains(t, err, "the file became shorter while it was read: it had ")
		require.NoError(t, in.Close())
	}
}
