package filestream

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (s step) appending(id core.StepExecutionID, exclusive bool) *Output {
	appends, err := AppendTo(true, "utf-8", "\n")
	require.NoError(s.t, err)
	o := s.attempt(id, exclusive)
	o.cfg.Trailer, o.cfg.Append = nil, appends
	return o
}

func (s step) lay(text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.path, []byte(text), 0o640))
}

func TestWhatIsAppendedFollowsWhatWasThereOnceWhoeverDiesOrIsFrozen(t *testing.T) {
	t.Parallel()
	for _, was := range []string{"old\n", "old", ""} {
		s := newStep(t)
		want := "one\ntwo\nthree\n"
		if was != "" {
			s.lay(was)
			want = "old\n" + want
		}
		first := s.open(s.appending(1, true), nil)
		require.Equal(t, was != "", first.Begun())
		s.write(first, "one\n")
		require.NoError(t, first.Release(t.Context()))
		require.NoError(t, first.Rewind(nil)) // to where it began
		at := s.write(first, "one\n")
		s.write(first, "not committed\n")

		frozen := s.open(s.appending(2, false), at)
		at = s.write(frozen, "two\n")
		require.NoError(t, frozen.Release(t.Context()))
		s.write(frozen, "not committed either\n")
		require.Empty(t, frozen.Appended(), "looked at by the first")

		third := s.open(s.appending(3, false), at)
		last := s.write(third, "three\n")
		s.publish(third)
		s.inView(want)
		require.Empty(t, s.parts())

		require.NoError(t, frozen.Rewind(at)) // it wakes
		s.write(frozen, "late\n")
		require.ErrorContains(t, frozen.Finish(t.Context()), "a later attempt has taken the file over")
		s.inView(want)

		// A crash after the rename, and another instance that has appended since.
		appended(t, s.path, "four\n")
		again := s.open(s.appending(4, true), last)
		require.True(t, again.Finished())
		s.inView(want + "four\n")
	}
}

func TestAFileThatChangesWhileItIsAppendedToIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string){
		"it had 4 bytes, and now has 8": func(path string) { appended(t, path, "new\n") },
		"its content is different":      func(path string) { require.NoError(t, os.WriteFile(path, []byte("ald\n"), 0o600)) },
		"it is gone":                    func(path string) { require.NoError(t, os.Remove(path)) },
	} {
		s := newStep(t)
		s.lay("old\n")
		o := s.open(s.appending(1, true), nil)
		s.write(o, "one\n")
		require.NoError(t, o.Release(t.Context()))
		change(s.path)
		err := o.Finish(t.Context())
		require.ErrorContains(t, err, "cannot append to "+s.path+": it changed since the step copied it: "+name)
		require.ErrorContains(t, err, "--from-start, which appends to the current file")
		require.NoError(t, o.Close())
		require.Len(t, s.parts(), 1)
	}
	s := newStep(t)
	o := s.open(s.appending(1, true), nil)
	s.write(o, "one\n")
	require.NoError(t, o.Release(t.Context()))
	s.lay("of another\n")
	require.ErrorContains(t, o.Finish(t.Context()), "it had 0 bytes, and now has 11")
	s.inView("of another\n")
}

func TestACopyWithoutAnythingAppendedIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	s.lay("old\n")
	o := s.open(s.appending(1, true), nil)
	require.NoError(t, o.Sync())
	at := o.Position()
	require.NoError(t, o.Release(t.Context()))
	require.NoError(t, o.Close())
	require.NoError(t, os.Remove(s.parts()[0]))
	appended(t, s.path, "new\n")
	o = s.open(s.appending(2, true), &at)
	require.False(t, o.Finished())
	s.write(o, "one\n")
	s.publish(o)
	s.inView("old\nnew\none\n")
	info, err := os.Stat(s.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "it keeps its permissions")
}

func TestACompressedFileIsAppendedToAsAWhole(t *testing.T) {
	t.Parallel()
	for name, content := range compressedForms(t) {
		if name != "gzip" && name != "zstd" {
			continue
		}
		path := filepath.Join(t.TempDir(), "out"+compressionOf("", name).suffix)
		open := func(content string) (*Output, error) {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			appends, err := AppendTo(true, "utf-8", "\n")
			require.NoError(t, err)
			o := NewOutput(OutputConfig{Path: path, Append: appends})
			if err := o.Open(t.Context(), nil); err != nil {
				require.NoError(t, o.Close())
				return nil, err
			}
			return o, nil
		}
		o, err := open(content[0])
		require.NoError(t, err)
		_, err = o.Write([]byte("more\n"))
		require.NoError(t, err)
		require.NoError(t, o.Sync())
		o.Position()
		require.NoError(t, o.Release(t.Context()))
		require.NoError(t, o.Finish(t.Context()))
		in, err := OpenInput(context.Background(), InputConfig{Path: path}, nil)
		require.NoError(t, err)
		got, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		require.Equal(t, compressedText()+"more\n", string(got))
		_, err = open(content[0][:len(content[0])-5])
		require.ErrorContains(t, err, "cannot append: "+path+": not readable as "+name)
		_, err = open("plain\n")
		require.ErrorContains(t, err, "cannot append: "+path+": not readable as "+name)
	}
}

func TestAFileInAnotherFormIsNotAppendedTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content  string
		encoding EncodingName
		record   int
		want     string
	}{
		{"\xff\xfea\x00\n\x00", "utf-8", 0, "it begins with the byte order mark of UTF-16, little endian, but encoding is utf-8"},
		{"\xfe\xff\x00a\x00\n", "utf-16", 0, "it begins with the byte order mark of UTF-16, big endian, but encoding is utf-16"},
		{"\xef\xbb\xbfa\n", "latin1", 0, "it begins with the byte order mark of UTF-8, but encoding is iso-8859-1"},
		{"\xff\xfea\x00\n", "utf-16", 0, "it ends in the middle of a character"},
		{gzipped(t, "a\n"), "utf-8", 0, "it is compressed with gzip"},
		{"12345678901", "", 5, "it has 11 bytes, which is not a multiple of the record length 5"},
	} {
		path := filepath.Join(t.TempDir(), "out.txt")
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		appends, err := AppendTo(true, c.encoding, "\n")
		require.NoError(t, err)
		appends.Record = c.record
		o := NewOutput(OutputConfig{Path: path, Append: appends})
		require.ErrorContains(t, o.Open(t.Context(), nil), "cannot append: "+path+": "+c.want)
		require.NoError(t, o.Close())
	}
	s := newStep(t)
	o := s.open(s.appending(1, true), nil)
	at := s.write(o, "one\n")
	require.NoError(t, o.Release(t.Context()))
	require.NoError(t, o.Close())
	require.ErrorContains(t, s.attempt(2, true).Open(t.Context(), at), "the file was started with append true, but now it is append false")
}
