package filestream

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func (s step) in(id core.StepExecutionID, exclusive bool, form Form) *Output {
	o := s.attempt(id, exclusive)
	o.cfg.Form = form
	return o
}

func TestAFileIsContinuedInTheFormThatItWasBegunIn(t *testing.T) {
	t.Parallel()
	for _, exclusive := range []bool{true, false} {
		s := newStep(t)
		first := s.open(s.in(1, true, Form{FormWriter: "a", "x": "1", "y": "1"}), nil)
		at := s.write(first, "one\n")
		require.NoError(t, first.Release(t.Context()))
		require.NoError(t, first.Close())
		part := s.parts()
		for _, c := range []struct {
			form     Form
			has, now string
		}{
			{Form{FormWriter: "a", "x": "2", "y": "1"}, "x 1", "x 2"},
			{Form{FormWriter: "a", "x": "2", "y": "2"}, "x 1; y 1", "x 2; y 2"},
			{Form{FormWriter: "b", "x": "2", "y": "1"}, "writer a", "writer b"},
		} {
			second := s.in(2, exclusive, c.form)
			err := second.Open(t.Context(), at)
			require.EqualError(t, err, "cannot restart: the file was started with "+c.has+", but now it is "+c.now+": a file has one format. Undo the change, or restart with --from-start, which writes "+
				s.path+" from the beginning. Nothing is lost until then: the 4 committed bytes are in "+part[0])
			require.False(t, exception.IsSkippable(err) || exception.IsRetryable(err))
			require.NoError(t, second.Close())
			require.Equal(t, part, s.parts(), "nothing was written")
		}
		zipped := s.in(2, exclusive, Form{FormWriter: "b"})
		zipped.cfg.Compression = CompressionGzip
		require.ErrorContains(t, zipped.Open(t.Context(), at), "started with writer a; compression none, but now it is writer b; compression gzip:")

		// A setting that only one of them knows is declared with the first item.
		third := s.open(s.in(3, exclusive, Form{FormWriter: "a", "x": "1"}), at)
		var refused *FormError
		require.ErrorAs(t, third.Declare("y", "2"), &refused)
		require.Equal(t, part[0], refused.Part)
		require.NoError(t, third.Declare("y", "1"))
		s.write(third, "two\n")
		s.publish(third)
		s.inView("one\ntwo\nend\n")
	}
}

func TestAFileWithNothingInItHasNoFormYet(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	first := s.open(s.in(1, true, Form{FormWriter: "a", "x": "1"}), nil)
	at := s.write(first, "")
	require.NoError(t, first.Release(t.Context()))
	require.NoError(t, first.Close())
	second := s.open(s.in(2, false, Form{FormWriter: "b", "x": "2"}), at)
	require.NoError(t, second.Declare("z", "1"))
	require.NoError(t, second.Declare("z", "2"), "nothing was committed with the other one")
	at = s.write(second, "two\n")
	require.Equal(t, Form{FormWriter: "b", "x": "2", "z": "2", formCompression: CompressionNone}, at.Form)
	require.NoError(t, second.Release(t.Context()))
	require.NoError(t, second.Rewind(nil))
	require.NotContains(t, second.Position().Form, "z")
	s.publish(second)
	s.inView("end\n")

	third := s.in(3, true, Form{FormWriter: "a", "x": "1"})
	require.ErrorContains(t, third.Open(t.Context(), at), "started with writer b", "also where it is in view already")
}

// A position of another kind of writer names no part: PATH itself would be
// truncated.
func TestAPositionOfAnotherKindOfWriterIsRefused(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	require.NoError(t, os.WriteFile(s.path, []byte("of another instance\n"), 0o600))
	o := s.attempt(2, true)
	err := o.Open(t.Context(), &OutputPosition{})
	require.EqualError(t, err, "cannot restart: the step committed work with another writer in this position, so "+s.path+" would have only the rest; undo the change, or restart with --from-start")
	require.NoError(t, o.Close())
	s.inView("of another instance\n")
}
