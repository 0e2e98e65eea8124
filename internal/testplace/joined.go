package testplace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (s suite) together(a core.Attempt) *filestream.Output {
	return filestream.NewOutput(filestream.OutputConfig{
		Path: s.path("out.csv"), Together: true, Trailer: []byte("end\n"), Attempt: func(context.Context) (core.Attempt, error) { return a, nil },
	})
}

// part writes one as a partition does; each text is a commit.
func (s suite) part(name string, id core.StepExecutionID, texts ...string) filestream.OutputPosition {
	s.Helper()
	a := attempt(1, id)
	a.Step, a.Manager = "load:"+name, 1
	o := s.together(a)
	require.NoError(s, o.Open(s.In, nil))
	_, err := o.Write([]byte("id\n"))
	require.NoError(s, err)
	require.NoError(s, filestream.EndHead(o))
	require.NoError(s, o.Sync())
	at := o.Position()
	for _, text := range texts {
		at = *s.commit(o, text)
	}
	staged, err := o.Stage(s.In)
	require.NoError(s, err)
	require.False(s, staged, "a part is not published")
	require.NoError(s, o.Release(s.In))
	require.NoError(s, o.Finish(s.In))
	require.NoError(s, o.Finish(s.In))
	require.NoError(s, o.Close())
	return at
}

// block has bytes that no other place of a file has.
func block(size int) string {
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "%d\n", rand.Int64()) //nolint:gosec // any text
	}
	return b.String()[:size-1] + "\n"
}

func (s suite) parts() (parts filestream.Joined, content string) {
	const mb = 1 << 20
	texts := [][]string{{block(9 * mb), block(30), block(50)}, {block(mb)}, {}, {block(2*mb + 7), block(7 * mb), block(9 * mb), block(17 * mb), block(8)}, {block(12)}}
	content = "id\n"
	for i, list := range texts {
		parts = append(parts, s.part(fmt.Sprint(i), core.StepExecutionID(11+i), list...))
		content += strings.Join(list, "")
	}
	return append(parts, filestream.OutputPosition{}), content + "end\n"
}

func (s suite) join(id core.StepExecutionID, at *filestream.OutputPosition, parts filestream.Joined) (*filestream.Output, *filestream.OutputPosition) {
	s.Helper()
	o := s.together(attempt(1, id))
	require.NoError(s, filestream.Join(s.In, o, at, parts))
	now := o.Position()
	require.NoError(s, o.Release(s.In))
	return o, &now
}

func joined(s suite) {
	parts, want := s.parts()
	o, _ := s.join(1, nil, parts)
	s.publish(o)
	require.True(s, want == s.Get(s.T, "out.csv"), "the file differs")
	s.only("out.csv")
}

func joinedAgain(s suite) {
	parts, want := s.parts()
	lost, first := s.join(1, nil, parts)
	require.NoError(s, lost.Close())
	frozen, at := s.join(2, first, parts)
	at2 := s.stage(frozen)

	third, _ := s.join(3, nil, parts) // with the first position only, which it ignores
	at3 := s.stage(third)
	require.NoError(s, third.Finish(s.In))
	require.True(s, want == s.Get(s.T, "out.csv"), "the file differs")
	require.Error(s, frozen.Finish(s.In))
	require.NoError(s, frozen.Close())
	require.NoError(s, third.Close())
	require.Equal(s, at.Sum, at2.Sum)

	crashed, _ := s.join(4, at3, parts) // after it was published
	require.True(s, crashed.Finished())
	require.NoError(s, crashed.Finish(s.In))
	require.NoError(s, crashed.Close())
	require.True(s, want == s.Get(s.T, "out.csv"), "the file differs")
	s.only("out.csv")
}

func joinedWithoutAPart(s suite) {
	parts, _ := s.parts()
	in, err := place.KeeperOf(s.In, s.path("out.csv"))
	if err != nil {
		s.Skip("it is only read")
	}
	require.NoError(s, in.Withdraw(s.In, parts[1].Path, parts[1].Part))
	o := s.together(attempt(1, 1))
	require.ErrorContains(s, filestream.Join(s.In, o, nil, parts), parts[1].Part+", a finished part of the file, is gone")
	require.NoError(s, o.Close())
	require.NoError(s, filestream.RemoveParts(s.In, attempt(1, 1), s.path("out.csv")))
	s.only()
}
