package filestream

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// These tests are about rule C15w: one file from the parts of a step.

func (s step) part(name string, id, manager core.StepExecutionID) *Output {
	return NewOutput(OutputConfig{Path: s.path, Together: true, Attempt: func(context.Context) (core.Attempt, error) {
		return core.Attempt{Repository: "r", Instance: 1, Step: s.name + ":" + name, ID: id, Manager: manager, Exclusive: true}, nil
	}})
}

// finish writes a part as a partition does, and returns its last position. The first line is its head.
func (s step) finish(o *Output, lines ...string) *OutputPosition {
	s.t.Helper()
	s.open(o, nil)
	for i, line := range lines {
		_, err := o.Write([]byte(line))
		require.NoError(s.t, err)
		if i == 0 {
			require.NoError(s.t, EndHead(o))
		}
	}
	require.NoError(s.t, o.Sync())
	at := o.Position()
	require.NoError(s.t, o.Release(s.t.Context()))
	require.NoError(s.t, o.Finish(s.t.Context()))
	require.NoError(s.t, o.Close())
	return &at
}

func (s step) together(id core.StepExecutionID, exclusive bool) *Output {
	o := s.attempt(id, exclusive)
	o.cfg.Together = true
	return o
}

// join publishes the parts, as the step does, and returns the last committed position.
func (s step) join(o *Output, at *OutputPosition, parts Joined) (*OutputPosition, error) {
	ctx := s.t.Context()
	defer o.Close() //nolint:errcheck // it may be dead
	if err := Join(ctx, o, at, parts); err != nil {
		return at, err
	}
	now := o.Position()
	if err := o.Release(ctx); err != nil {
		return &now, err
	}
	return &now, o.Finish(ctx)
}

func (s step) threeParts(manager core.StepExecutionID) Joined {
	s.t.Helper()
	return Joined{
		*s.finish(s.part("a", 11, manager), "id\n", "one\n", "two\n"),
		*s.finish(s.part("b", 12, manager), "id\n"),
		*s.finish(s.part("c", 13, manager), "id\n", "three\n"),
	}
}

const joinedText = "id\none\ntwo\nthree\nend\n"

func TestPartsAreJoinedOnceWhereverTheAttemptDies(t *testing.T) {
	t.Parallel()
	for _, exclusive := range []bool{true, false} {
		for dies, done := 0, false; !done; dies++ {
			s := newStep(t)
			parts := s.threeParts(1)
			require.Len(t, s.parts(), 3)
			o := s.together(1, true)
			o.disk = &mortal{left: dies}
			at, err := s.join(o, nil, parts)
			if done = err == nil; !done {
				require.ErrorIs(t, err, errDead)
			}
			_, err = s.join(s.together(21, exclusive), at, parts)
			require.NoError(t, err, "died at operation %d", dies)
			s.inView(joinedText)
			require.Empty(t, s.parts(), "died at operation %d", dies)
		}
	}
}

func TestAFrozenAttemptCannotPublishTheFileThatItHasJoined(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	parts := s.threeParts(1)
	frozen := s.together(1, true)
	require.NoError(t, Join(t.Context(), frozen, nil, parts))
	at := frozen.Position()
	require.NoError(t, frozen.Release(t.Context()))

	_, err := s.join(s.together(21, false), &at, parts)
	require.NoError(t, err)
	s.inView(joinedText)
	again := *s.finish(s.part("a", 31, 30), "id\n", "of the next round\n")
	require.NoError(t, os.WriteFile(s.path, []byte("of another instance\n"), 0o600))
	require.ErrorContains(t, frozen.Finish(t.Context()), "a later attempt has taken the file over")
	require.NoError(t, frozen.Close())
	s.inView("of another instance\n")
	require.Equal(t, []string{s.path + again.Part}, s.parts(), "the parts of a later plan are not its own")
}

func TestAPositionOfOtherWorkIsNotContinued(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	at, err := s.join(s.together(1, true), nil, s.threeParts(1))
	require.NoError(t, err)
	parts := Joined{*s.finish(s.part("a", 31, 30), "id\n", "four\n")}
	_, err = s.join(s.together(30, true), at, parts)
	require.NoError(t, err)
	s.inView("id\nfour\nend\n")

	_, err = s.join(s.together(40, true), &OutputPosition{Path: s.path}, Joined{})
	require.NoError(t, err)
	s.inView("end\n")
}

func TestWhatCannotBeJoinedIsNotPublished(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(s step, parts Joined){
		"a finished part of the file, is not on": func(s step, parts Joined) { require.NoError(s.t, os.Remove(s.path+parts[2].Part)) },
		"the 9 committed bytes of": func(s step, parts Joined) {
			require.NoError(s.t, os.WriteFile(s.path+parts[2].Part, []byte("id\nThree\n"), 0o600))
		},
		"has less than its 11 committed bytes": func(s step, parts Joined) { require.NoError(s.t, os.Truncate(s.path+parts[0].Part, 7)) },
		"has columns a, but":                   func(_ step, parts Joined) { parts[0].Form["columns"], parts[2].Form["columns"] = "a", "b" },
	} {
		s := newStep(t)
		parts := s.threeParts(1)
		spoil(s, parts)
		left := s.parts()
		_, err := s.join(s.together(1, true), nil, parts)
		require.ErrorContains(t, err, want)
		require.NoFileExists(t, s.path)
		require.Equal(t, left, s.parts(), "the parts stay, and nothing else")
	}
}

func TestPartsOfOneStepDoNotLockEachOtherOut(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	a := s.open(s.part("a", 11, 1), nil)
	s.open(s.part("b", 12, 1), nil)
	other := step{t: t, path: s.path, name: "other"}
	require.ErrorContains(t, other.attempt(7, true).Open(t.Context(), nil), "is being written by another execution")
	require.ErrorContains(t, other.part("a", 8, 7).Open(t.Context(), nil), "is being written by another execution")
	require.NoError(t, a.Close())
}

func TestLeftoversOfCompletedPartsGoWithTheirStep(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	s.threeParts(2)
	next := *s.finish(s.part("a", 31, 30), "id\n")
	at, err := json.Marshal(OutputPosition{Path: s.path})
	require.NoError(t, err)
	require.NoError(t, RemoveLeft(t.Context(), core.Attempt{Repository: "r", Instance: 1, Step: s.name, ID: 29}, at))
	require.Equal(t, []string{s.path + next.Part}, s.parts())
}

func TestCompressedPartsAreMembersOfOneFile(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".gz", ".zst"} {
		s := newStep(t)
		s.path += suffix
		_, err := s.join(s.together(1, true), nil, s.threeParts(1))
		require.NoError(t, err)
		in, err := OpenInput(t.Context(), InputConfig{Path: s.path}, nil)
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		require.Equal(t, joinedText, string(text))
		require.NoError(t, in.Close())
	}
	s := newStep(t)
	s.path += ".gz"
	_, err := s.join(s.together(1, true), nil, Joined{})
	require.NoError(t, err)
	file, err := os.Open(s.path)
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // it is only read
	_, err = gzip.NewReader(file)
	require.NoError(t, err)
}

func TestSumsOfPartsAddUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		text := make([]byte, r.IntN(5000))
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		at := r.IntN(len(text) + 1)
		a, b := crc32.Checksum(text[:at], castagnoli()), crc32.Checksum(text[at:], castagnoli())
		require.Equal(t, crc32.Checksum(text, castagnoli()), shifted(a, int64(len(text)-at))^b)
	}
}

func TestJoinedPositionsAreOfParts(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	at, err := json.Marshal(s.write(s.open(s.attempt(1, true), nil), "one\n"))
	require.NoError(t, err)
	_, err = JoinedAt([]item.Position{nil, at})
	require.ErrorContains(t, err, "was not written together with the other parts")
}

func TestTheFirstPartIsContinuedUnlessAnEarlierAttemptMayWake(t *testing.T) {
	t.Parallel()
	for _, exclusive := range []bool{true, false} {
		s := newStep(t)
		parts := s.threeParts(1)
		first, err := os.Stat(s.path + parts[0].Part)
		require.NoError(t, err)
		o := s.together(1, true) // dies before its position is committed
		require.NoError(t, Join(t.Context(), o, nil, parts))
		require.NoError(t, o.Close())
		_, err = s.join(s.together(21, exclusive), nil, parts)
		require.NoError(t, err)
		s.inView(joinedText)
		now, err := os.Stat(s.path)
		require.NoError(t, err)
		require.Equal(t, exclusive, os.SameFile(first, now))
		require.Empty(t, s.parts())
	}
}
