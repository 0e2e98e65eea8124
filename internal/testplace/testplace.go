// Package testplace states the contract of a place: committed bytes are there once, and the name is the fence.
//
// It imports core, filestream and place. Only tests import it.
package testplace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Config is a folder of a place, with a way around the place to look at it.
type Config struct {
	In     context.Context //nolint:containedctx // it has the place
	Folder string          // without a slash at its end
	// Put makes a file, or replaces it at once.
	Put func(t testing.TB, name, text string)
	Get func(t testing.TB, name string) string
	// Names are all files and parts, and publications that were begun.
	Names func(t testing.TB) []string
}

type suite struct {
	*testing.T
	Config
}

func (s suite) path(name string) string { return s.Folder + "/" + name }

func (s suite) only(names ...string) {
	s.Helper()
	require.Equal(s, names, s.Names(s.T))
}

// Place runs the suite; each test has a folder of its own.
func Place(t *testing.T, begin func(t testing.TB) Config) {
	t.Helper()
	for name, test := range map[string]func(suite){
		"a file is read from any offset":                   read,
		"a replaced file is read as it was, or not at all": replaced,
		"a missing file is named so":                       missing,
		"files are found by a pattern":                     found,
		"bytes are seen when they are published":           published,
		"a restart continues at its position":              restarted,
		"a superseded attempt leaves nothing":              superseded,
		"an attempt that wakes publishes nothing":          woken,
		"a completed publication is found after a crash":   completed,
		"a part that was changed refuses the restart":      changed,
		"a position is as short for a large file":          short,
		"a check of the place works and leaves nothing":    checked,
		"text of no commit is cut off":                     rewound,
		"the parts of a step that is given up are removed": givenUp,
		"two attempts at once have parts of their own":     apart,
		"an empty file is published":                       empty,
		"a later instance replaces the file":               replacing,
		"the parts of a step are joined":                   joined,
		"parts are joined by the attempt that comes last":  joinedAgain,
		"a part of several that is gone is named":          joinedWithoutAPart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(suite{t, begin(t)})
		})
	}
}

func read(s suite) {
	content := strings.Repeat("0123456789", 30_000)
	const name = "a b/ü.csv"
	s.Put(s.T, name, content)
	f, err := place.Open(s.In, s.path(name))
	require.NoError(s, err)
	info, err := place.Stat(s.In, s.path(name))
	require.NoError(s, err)
	require.Equal(s, f.Opened(), info)
	require.EqualValues(s, len(content), info.Size)
	for _, at := range []int64{0, 1, 65_536, 299_999, 300_000} {
		in := f.From(at)
		text, err := io.ReadAll(in)
		require.NoError(s, err)
		require.Equal(s, content[at:], string(text))
		require.NoError(s, in.Close())
	}
	some := make([]byte, 4)
	n, err := f.ReadAt(some, 299_998)
	require.ErrorIs(s, err, io.EOF)
	require.Equal(s, "89", string(some[:n]))
	require.NoError(s, f.Close())
}

func replaced(s suite) {
	old := strings.Repeat("0123456789", 30_000)
	s.Put(s.T, "a.csv", old)
	f, err := place.Open(s.In, s.path("a.csv"))
	require.NoError(s, err)
	s.Put(s.T, "a.csv", strings.ToUpper("new")+old)
	text, err := io.ReadAll(f.From(10))
	if err == nil {
		require.Equal(s, old[10:], string(text))
	}
	now, statErr := place.Stat(s.In, s.path("a.csv"))
	require.NoError(s, statErr)
	require.NotEqual(s, f.Opened().Mark(), now.Mark())
	if err != nil {
		require.ErrorContains(s, err, f.Opened().Version)
		require.ErrorContains(s, err, now.Version)
	}
	require.NoError(s, f.Close())
}

func missing(s suite) {
	_, err := place.Stat(s.In, s.path("no.csv"))
	require.ErrorIs(s, err, fs.ErrNotExist)
	_, err = place.Open(s.In, s.path("no.csv"))
	require.ErrorIs(s, err, fs.ErrNotExist)
	list, err := place.Find(s.In, s.path("no/*.csv"))
	require.NoError(s, err)
	require.Empty(s, list)
}

func found(s suite) {
	for _, name := range []string{"in/b.csv", "in/a.csv", "in/a.txt", "in/deep/c.csv", "other/d.csv"} {
		s.Put(s.T, name, name)
	}
	list, err := place.Find(s.In, s.path("in/*.csv"))
	require.NoError(s, err)
	require.Len(s, list, 2)
	for i, name := range []string{"in/a.csv", "in/b.csv"} {
		require.Equal(s, s.path(name), list[i].Path)
		info, err := place.Stat(s.In, list[i].Path)
		require.NoError(s, err)
		require.Equal(s, info.Mark(), list[i].Mark())
	}
}

func attempt(instance core.JobInstanceID, id core.StepExecutionID) core.Attempt {
	return core.Attempt{Repository: "r", Instance: instance, Step: "load", ID: id}
}

func (s suite) output(name string, a core.Attempt) *filestream.Output {
	return filestream.NewOutput(filestream.OutputConfig{Path: s.path(name), Attempt: func(context.Context) (core.Attempt, error) { return a, nil }})
}

func (s suite) open(name string, a core.Attempt, at *filestream.OutputPosition) *filestream.Output {
	s.Helper()
	o := s.output(name, a)
	require.NoError(s, o.Open(s.In, at))
	return o
}

func (s suite) commit(o *filestream.Output, text string) *filestream.OutputPosition {
	s.Helper()
	_, err := o.Write([]byte(text))
	require.NoError(s, err)
	require.NoError(s, o.Sync())
	at := o.Position()
	require.NoError(s, o.Release(s.In))
	return &at
}

// stage commits the second time, where the place needs that.
func (s suite) stage(o *filestream.Output) *filestream.OutputPosition {
	s.Helper()
	staged, err := o.Stage(s.In)
	require.NoError(s, err)
	at := o.Position()
	if staged {
		require.NoError(s, o.Release(s.In))
	}
	return &at
}

func (s suite) publish(o *filestream.Output) {
	s.Helper()
	s.stage(o)
	require.NoError(s, o.Finish(s.In))
	require.NoError(s, o.Close())
}

func published(s suite) {
	s.Put(s.T, "out.csv", "old\n")
	o := s.open("out.csv", attempt(1, 1), nil)
	s.commit(o, "one\n")
	s.commit(o, "two\n")
	require.Equal(s, "old\n", s.Get(s.T, "out.csv"))
	list, err := place.Find(s.In, s.path("*.csv"))
	require.NoError(s, err)
	require.Len(s, list, 1)
	s.publish(o)
	require.Equal(s, "one\ntwo\n", s.Get(s.T, "out.csv"))
	s.only("out.csv")
}

func restarted(s suite) {
	for i, exclusive := range []bool{true, false} {
		name := fmt.Sprintf("%d.csv", i)
		first := s.open(name, attempt(1, 1), nil)
		at := s.commit(first, "one\n")
		_, err := first.Write([]byte("lost\n"))
		require.NoError(s, err)
		require.NoError(s, first.Sync())
		require.NoError(s, first.Close())
		a := attempt(1, 2)
		a.Exclusive = exclusive
		next := s.open(name, a, at)
		s.commit(next, "two\n")
		s.publish(next)
		require.Equal(s, "one\ntwo\n", s.Get(s.T, name))
	}
	s.only("0.csv", "1.csv")
}

func superseded(s suite) {
	frozen := s.open("out.csv", attempt(1, 1), nil)
	at := s.commit(frozen, "one\n")
	next := s.open("out.csv", attempt(1, 2), at)
	s.commit(next, "two\n")
	_, err := frozen.Write([]byte("lost\n"))
	require.NoError(s, err)
	require.NoError(s, frozen.Sync())
	require.NoError(s, frozen.Close())
	s.publish(next)
	require.Equal(s, "one\ntwo\n", s.Get(s.T, "out.csv"))
	s.only("out.csv")
}

func woken(s suite) {
	frozen := s.open("out.csv", attempt(1, 1), nil)
	s.commit(frozen, "one\n")
	at := s.stage(frozen)
	next := s.open("out.csv", attempt(1, 2), at)
	s.commit(next, "two\n")
	s.publish(next)
	require.Error(s, frozen.Finish(s.In))
	require.NoError(s, frozen.Close())
	require.Equal(s, "one\ntwo\n", s.Get(s.T, "out.csv"))
	s.only("out.csv")
}

func completed(s suite) {
	first := s.open("out.csv", attempt(1, 1), nil)
	s.commit(first, "one\n")
	at := s.stage(first)
	require.NoError(s, first.Finish(s.In))
	again := s.open("out.csv", attempt(1, 2), at)
	require.True(s, again.Finished())
	require.NoError(s, again.Finish(s.In))
	require.NoError(s, again.Close())
	require.Equal(s, "one\n", s.Get(s.T, "out.csv"))
	s.only("out.csv")
}

func changed(s suite) {
	o := s.open("out.csv", attempt(1, 1), nil)
	at := s.commit(o, "one\n")
	require.NoError(s, o.Close())
	at.Sum++
	a := attempt(1, 2)
	a.Exclusive = true
	again := s.output("out.csv", a)
	require.ErrorContains(s, again.Open(s.In, at), "cannot restart")
	require.NoError(s, again.Close())
	require.Empty(s, s.Get(s.T, "out.csv"))
}

func short(s suite) {
	var want strings.Builder
	var at *filestream.OutputPosition
	for id := core.StepExecutionID(1); id <= 4; id++ {
		a := attempt(1, id)
		a.Exclusive = id%2 == 0 // of the others an earlier attempt may wake
		o := s.open("big.csv", a, at)
		for i := range 12 {
			chunk := strings.Repeat(fmt.Sprintf("%d-%d\n", id, i), 150_000)
			want.WriteString(chunk)
			at = s.commit(o, chunk)
		}
		require.Less(s, len(fmt.Sprint(*at)), 1024)
		require.LessOrEqual(s, len(s.Names(s.T)), 20)
		if id < 4 {
			require.NoError(s, o.Close())
			continue
		}
		s.publish(o)
	}
	require.True(s, want.String() == s.Get(s.T, "big.csv"))
	s.only("big.csv")
}

func checked(s suite) {
	in, err := place.Of(s.In, s.path("x"))
	require.NoError(s, err)
	if _, is := in.(place.Keeper); !is {
		return // Check is for places without locks: the disk renames
	}
	list, err := place.Check(s.In, s.Folder, true)
	require.NoError(s, err)
	for _, one := range list {
		require.Empty(s, one.Error, one.Name)
	}
	require.Len(s, list, 8)
	require.Empty(s, s.Names(s.T))
}

func rewound(s suite) {
	o := s.open("out.csv", attempt(1, 1), nil)
	at := s.commit(o, "one\n")
	for _, text := range []string{"lost\n", "lost, too\n"} {
		_, err := o.Write([]byte(text))
		require.NoError(s, err)
		require.NoError(s, o.Sync())
		require.NoError(s, o.Rewind(at))
	}
	s.commit(o, "two\n")
	s.publish(o)
	require.Equal(s, "one\ntwo\n", s.Get(s.T, "out.csv"))
	s.only("out.csv")
}

func givenUp(s suite) {
	o := s.open("out.csv", attempt(1, 1), nil)
	at := s.commit(o, "one\n")
	s.stage(o)
	text := fmt.Sprintf(`{"path":%q,"part":%q}`, at.Path, at.Part)
	require.NoError(s, o.Close())
	require.NotEmpty(s, s.Names(s.T))
	require.NoError(s, filestream.RemoveLeft(s.In, attempt(1, 1), []byte(text)))
	require.Empty(s, s.Names(s.T))
}

func apart(s suite) {
	first, other := s.open("a.csv", attempt(1, 1), nil), s.open("b.csv", attempt(2, 2), nil)
	s.commit(first, "a\n")
	s.commit(other, "b\n")
	require.Empty(s, s.Get(s.T, "a.csv")+s.Get(s.T, "b.csv"))
	s.publish(other)
	s.publish(first)
	require.Equal(s, "a\n", s.Get(s.T, "a.csv"))
	require.Equal(s, "b\n", s.Get(s.T, "b.csv"))
	s.only("a.csv", "b.csv")
}

func empty(s suite) {
	o := s.open("out.csv", attempt(1, 1), nil)
	s.commit(o, "")
	s.publish(o)
	info, err := place.Stat(s.In, s.path("out.csv"))
	require.NoError(s, err)
	require.Zero(s, info.Size)
	f, err := place.Open(s.In, s.path("out.csv"))
	require.NoError(s, err)
	text, err := io.ReadAll(f.From(0))
	require.NoError(s, errors.Join(err, f.Close()))
	require.Empty(s, text)
	s.only("out.csv")
}

func replacing(s suite) {
	for i, text := range []string{"one\n", "two\n"} {
		o := s.open("out.csv", attempt(core.JobInstanceID(i+1), core.StepExecutionID(i+1)), nil)
		s.commit(o, text)
		s.publish(o)
		require.Equal(s, text, s.Get(s.T, "out.csv"))
	}
	s.only("out.csv")
}
