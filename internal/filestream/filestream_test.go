package filestream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func input(t testing.TB, name, content string, cfg InputConfig, at *InputPosition) *Input {
	t.Helper()
	cfg.Path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(cfg.Path, []byte(content), 0o600))
	in, err := OpenInput(context.Background(), cfg, at)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	return in
}

func gzipped(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(content))
	require.NoError(t, errors.Join(err, z.Close()))
	return b.String()
}

func TestARewindDeliversAgainWhatWasKept(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789\n", 30_000)
	for _, content := range []string{text, gzipped(t, text)} {
		cfg := InputConfig{Compression: "none"}
		if content != text {
			cfg.Compression = "gzip"
		}
		in := input(t, "in", content, cfg, nil)
		buf := make([]byte, 200_000)
		_, err := io.ReadFull(in, buf)
		require.NoError(t, err)
		in.Keep(70_000)
		_, err = io.ReadFull(in, buf[:60_000])
		require.NoError(t, err)
		require.Equal(t, int64((100_000-70_000)/11), in.Lines(70_000, 100_000))
		in.Rewind(70_000)
		rest, err := io.ReadAll(in)
		require.NoError(t, err)
		require.Equal(t, text[70_000:], string(rest))
	}
}

func TestARecordWithoutEndIsTooLongUntilItIsSkipped(t *testing.T) {
	t.Parallel()
	in := input(t, "in", strings.Repeat("x", 1<<20)+"\nnext", InputConfig{Max: 1000}, nil)
	_, err := io.ReadAll(in)
	require.ErrorIs(t, err, ErrTooLong)
	require.ErrorIs(t, in.Failed(), ErrTooLong)
	next, err := in.SkipLine(context.Background(), 0)
	require.NoError(t, err)
	require.Equal(t, int64(1<<20+1), next)
	require.Less(t, cap(in.buf), 1<<19, "a skipped line is not kept in memory")
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, "next", string(rest))
	require.NoError(t, in.Failed())
}

func TestACutOffGzipFileIsNoEndOfData(t *testing.T) {
	t.Parallel()
	content := gzipped(t, "some text\n")
	in := input(t, "in.gz", content[:len(content)-4], InputConfig{}, nil)
	_, err := io.ReadAll(in)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Error(t, in.Failed())

	empty := input(t, "empty.gz", "", InputConfig{}, nil)
	text, err := io.ReadAll(empty)
	require.NoError(t, err)
	require.Empty(t, text)

	path := filepath.Join(t.TempDir(), "plain.gz")
	require.NoError(t, os.WriteFile(path, []byte("a plain text, whatever its name says"), 0o600))
	_, err = OpenInput(context.Background(), InputConfig{Path: path}, nil)
	require.ErrorContains(t, err, path+": not readable as gzip")
	_, err = OpenInput(context.Background(), InputConfig{Path: filepath.Dir(path)}, nil)
	require.ErrorContains(t, err, "is a directory")
}

func TestSkippingToAPositionStopsWithTheContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.gz")
	require.NoError(t, os.WriteFile(path, []byte(gzipped(t, strings.Repeat("x", 4<<20))), 0o600))
	in, err := OpenInput(context.Background(), InputConfig{Path: path}, nil)
	require.NoError(t, err)
	at := in.Position(3 << 20)
	require.NoError(t, in.Close())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = OpenInput(ctx, InputConfig{Path: path}, &at)
	require.ErrorIs(t, err, context.Canceled)
	at.Offset = 5 << 20
	_, err = OpenInput(context.Background(), InputConfig{Path: path}, &at)
	require.ErrorContains(t, err, "cannot restart at offset 5242880")
}

func TestAFinishThatFailedMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.txt")
	o := NewOutput(OutputConfig{Path: path, Trailer: []byte("end\n")})
	require.NoError(t, o.Open(context.Background(), nil))
	_, err := o.Write([]byte("text\n"))
	require.NoError(t, err)
	require.NoError(t, o.Sync())
	at := o.Position()
	require.NoError(t, o.Release(t.Context()))
	// A folder in the way of the name.
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o755))
	require.Error(t, o.Finish(t.Context()))
	require.False(t, o.Finished())
	require.Equal(t, at, o.Position())
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, o.Finish(t.Context()))
	require.True(t, o.Finished())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "text\nend\n", string(data))
	require.NoError(t, o.Close())
}

func TestAFileInViewIsOnlyOursIfItIsWhatWeCommitted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.txt")
	o := NewOutput(OutputConfig{Path: path, Trailer: []byte("end\n")})
	require.NoError(t, o.Open(context.Background(), nil))
	_, err := o.Write([]byte("text\n"))
	require.NoError(t, err)
	require.NoError(t, o.Sync())
	at := o.Position()
	require.NoError(t, o.Release(t.Context()))
	require.NoError(t, o.Finish(t.Context()))

	again := NewOutput(OutputConfig{Path: path, Trailer: []byte("end\n")})
	require.NoError(t, again.Open(context.Background(), &at))
	require.True(t, again.Finished())
	_, err = again.Write([]byte("more"))
	require.ErrorContains(t, err, "is complete already")
	require.Error(t, again.Rewind(&at))

	for _, other := range []string{"TEXT\nend\n", "text\nend", "text\nend\nmore", "te"} {
		require.NoError(t, os.WriteFile(path, []byte(other), 0o600))
		o := NewOutput(OutputConfig{Path: path, Trailer: []byte("end\n")})
		require.ErrorContains(t, o.Open(context.Background(), &at), " is gone, with its 5 committed bytes")
		require.NoError(t, o.Close())
	}
}

func TestAnEmptyCompressedFileIsAGzipFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.gz")
	o := NewOutput(OutputConfig{Path: path})
	require.NoError(t, o.Open(context.Background(), nil))
	require.NoError(t, o.Sync())
	at := o.Position()
	require.NoError(t, o.Release(t.Context()))
	require.NoError(t, o.Finish(t.Context()))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text, err := o.cfg.compression().decompressed(data)
	require.NoError(t, err)
	require.Empty(t, text)
	again := NewOutput(OutputConfig{Path: path})
	require.NoError(t, again.Open(context.Background(), &at))
	require.True(t, again.Finished())
}

func TestADirectoryIsNoTarget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.EqualError(t, NewOutput(OutputConfig{Path: dir}).Open(context.Background(), nil), dir+": it is a directory")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.ErrorContains(t, NewOutput(OutputConfig{Path: filepath.Join(dir, "file", "out")}).Open(context.Background(), nil), "not a directory")
}

func TestWhatIsNoRegularFileIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600)) // without a writer: opening it would wait for one
	for path, want := range map[string]string{
		pipe:           pipe + ": it is a pipe, which cannot be read again after a failure: write it to a file first",
		"/dev/zero":    "/dev/zero: it is a device, which cannot be read again after a failure: write it to a file first",
		t.TempDir():    "it is a directory",
		pipe + ".none": "no such file: " + pipe + ".none",
	} {
		_, err := OpenInput(t.Context(), InputConfig{Path: path}, nil)
		require.ErrorContains(t, err, want)
	}
}
