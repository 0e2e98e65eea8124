package filestream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStandardInputIsReadOnceAndNeverGoneOnWith(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("some line\n", 20_000)
	in, err := OpenInput(t.Context(), InputConfig{Path: "-", Stdin: strings.NewReader("\uFEFF" + text)}, nil)
	require.NoError(t, err)
	got, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	at := in.Position(int64(len(text)))
	require.NoError(t, in.Close())
	_, err = OpenInput(t.Context(), InputConfig{Path: "-", Stdin: strings.NewReader(text)}, &at)
	require.ErrorContains(t, err, "cannot restart: 200000 bytes of the standard input were read, and it cannot be read again")
}

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	if f.left -= n; n < len(p) {
		return n, errors.New("nobody reads")
	}
	return n, nil
}

func TestTheStandardOutputGetsWhatIsCommittedAndNothingElse(t *testing.T) {
	t.Parallel()
	var seen bytes.Buffer
	out := NewOutput(OutputConfig{Path: "-", Stdout: &seen, Trailer: []byte("end")})
	require.NoError(t, out.Open(t.Context(), nil))
	write := func(text string) {
		_, err := io.WriteString(out, text)
		require.NoError(t, err)
	}
	write("one,")
	require.NoError(t, out.Sync())
	require.Empty(t, seen.String(), "not before the commit")
	first := out.Position()
	write("rolled back,")
	require.NoError(t, out.Rewind(&first))
	write("two,")
	require.NoError(t, out.Release(t.Context()))
	require.Equal(t, "one,two,", seen.String())
	write("three,")
	require.NoError(t, out.Sync())
	at := out.Position()
	require.NoError(t, out.Release(t.Context()))
	require.ErrorContains(t, out.Rewind(&first), "cannot go back to byte 4: 14 bytes are written")
	require.NoError(t, out.Rewind(&at))
	require.NoError(t, out.Finish(t.Context()))
	require.NoError(t, out.Finish(t.Context()))
	require.Equal(t, "one,two,three,end", seen.String())
	require.NoError(t, out.Close())
	require.ErrorContains(t, NewOutput(OutputConfig{Path: "-"}).Open(t.Context(), &at), "cannot restart: 14 bytes were written to the standard output")

	cut := NewOutput(OutputConfig{Path: "-", Stdout: &full{left: 3}})
	require.NoError(t, cut.Open(t.Context(), nil))
	_, err := io.WriteString(cut, "12345")
	require.NoError(t, err)
	require.ErrorContains(t, cut.Release(t.Context()), "write to the standard output: nobody reads")
}
