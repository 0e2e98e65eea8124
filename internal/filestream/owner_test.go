package filestream

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// These tests are about rule C15b: an output file belongs to one attempt.

type step struct {
	t    *testing.T
	path string
	name string
}

func newStep(t *testing.T) step {
	return step{t: t, path: filepath.Join(t.TempDir(), "out.txt"), name: "load"}
}

func (s step) attempt(id core.StepExecutionID, exclusive bool) *Output {
	return NewOutput(OutputConfig{Path: s.path, Trailer: []byte("end\n"), Attempt: func(context.Context) (core.Attempt, error) {
		return core.Attempt{Repository: "r", Instance: 1, Step: s.name, ID: id, Exclusive: exclusive}, nil
	}})
}

func (s step) open(o *Output, at *OutputPosition) *Output {
	s.t.Helper()
	require.NoError(s.t, o.Open(context.Background(), at))
	s.t.Cleanup(func() { o.Close() }) //nolint:errcheck // most are closed already
	return o
}

// write appends a text and returns the position that a chunk would commit.
func (s step) write(o *Output, text string) *OutputPosition {
	s.t.Helper()
	_, err := o.Write([]byte(text))
	require.NoError(s.t, err)
	require.NoError(s.t, o.Sync())
	at := o.Position()
	return &at
}

func (s step) publish(o *Output) {
	s.t.Helper()
	require.NoError(s.t, o.Sync())
	o.Position()
	require.NoError(s.t, o.Release(s.t.Context()))
	require.NoError(s.t, o.Finish(s.t.Context()))
	require.NoError(s.t, o.Close())
}

func (s step) parts() []string {
	s.t.Helper()
	names, err := filepath.Glob(s.path + ".part*")
	require.NoError(s.t, err)
	return names
}

func (s step) inView(want string) {
	s.t.Helper()
	data, err := os.ReadFile(s.path)
	require.NoError(s.t, err)
	require.Equal(s.t, want, string(data))
}

func TestAnAttemptThatWakesCanNeitherChangeNorReplaceWhatItsSuccessorPublished(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	frozen := s.open(s.attempt(1, true), nil)
	s.write(frozen, "one\n")
	require.NoError(t, frozen.Release(t.Context()))
	at := s.write(frozen, "two\n")
	_, err := frozen.Write([]byte("not committed"))
	require.NoError(t, err)

	next := s.open(s.attempt(2, false), at)
	s.write(next, "three\n")
	s.publish(next)
	s.inView("one\ntwo\nthree\nend\n")
	require.Empty(t, s.parts())

	// Another instance publishes the same path, then the first attempt wakes.
	require.NoError(t, os.WriteFile(s.path, []byte("of another instance\n"), 0o600))
	require.NoError(t, frozen.Rewind(at))
	s.write(frozen, "late\n")
	require.ErrorContains(t, frozen.Finish(t.Context()), "a later attempt has taken the file over")
	require.NoError(t, frozen.Close())
	s.inView("of another instance\n")
	require.Empty(t, s.parts())
}

func TestAnAttemptThatDiedBeforeItsFirstCommitLeavesThePredecessorsFileToCount(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	first := s.open(s.attempt(1, true), nil)
	at := s.write(first, "one\n")
	require.NoError(t, first.Release(t.Context()))

	second := s.open(s.attempt(2, false), at) // copies, and freezes
	s.write(second, "two, never committed\n")
	require.Error(t, second.Finish(t.Context()), "its position is not committed")

	third := s.open(s.attempt(3, false), at)
	s.write(third, "two\n")
	s.publish(third)
	s.inView("one\ntwo\nend\n")
	require.Empty(t, s.parts(), "the files of both are gone")
}

func TestAStaleAttemptDoesNotOpen(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	s.open(s.attempt(7, true), nil)
	stale := s.attempt(6, true)
	require.ErrorContains(t, stale.Open(context.Background(), nil), "is being written by another execution, step, attempt or writer")
	require.NoError(t, stale.Close())
	require.Len(t, s.parts(), 1)
}

func TestAnExclusiveSuccessorGoesOnInTheSameFile(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	first := s.open(s.attempt(1, true), nil)
	at := s.write(first, "one\n")
	s.write(first, "not committed\n")
	require.NoError(t, first.Close())
	part := s.parts()

	second := s.open(s.attempt(2, true), at)
	require.Equal(t, part, s.parts())
	at = s.write(second, "two\n")
	require.Equal(t, part[0], s.path+at.Part)
	s.publish(second)
	s.inView("one\ntwo\nend\n")
}

func TestWhatWasCommittedIsComparedOnARestart(t *testing.T) {
	t.Parallel()
	for _, exclusive := range []bool{true, false} {
		s := newStep(t)
		first := s.open(s.attempt(1, true), nil)
		at := s.write(first, "one\n")
		require.NoError(t, first.Close())
		part := s.parts()[0]

		require.NoError(t, os.WriteFile(part, []byte("ONE\n"), 0o600))
		again := s.attempt(2, exclusive)
		require.ErrorContains(t, again.Open(context.Background(), at), "have changed since")
		require.NoError(t, again.Close())

		require.NoError(t, os.Truncate(part, 2))
		again = s.attempt(2, exclusive)
		require.ErrorContains(t, again.Open(context.Background(), at), "has 2 bytes, but 4 were committed")
		require.NoError(t, again.Close())
		require.Equal(t, []string{part}, s.parts(), "an attempt that could not open leaves nothing")
	}
}

func TestTwoThatWriteOneFileAtOnceAreRefused(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	first := s.open(s.attempt(1, true), nil)
	other := s
	other.name = "another step"
	for _, second := range []*Output{other.attempt(5, true), s.attempt(1, true)} {
		require.ErrorContains(t, second.Open(context.Background(), nil), "is being written by another execution, step, attempt or writer")
		require.NoError(t, second.Close())
	}
	s.write(first, "one\n")
	s.publish(first)
	s.inView("one\nend\n")
	s.publish(s.open(other.attempt(5, true), nil))
	s.inView("end\n")
}

func TestOnlyARegularFileIsReplacedAndNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	for path, what := range map[string]string{"/dev/full": "not a regular file", "/dev/null": "not a regular file"} {
		require.ErrorContains(t, NewOutput(OutputConfig{Path: path}).Open(context.Background(), nil), what)
	}
	s := newStep(t)
	victim := filepath.Join(filepath.Dir(s.path), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("untouched"), 0o600))
	require.NoError(t, os.Symlink(victim, s.path))
	require.ErrorContains(t, s.attempt(1, true).Open(context.Background(), nil), "it is a symbolic link")
	require.NoError(t, os.Remove(s.path))

	first := s.open(s.attempt(1, true), nil)
	at := s.write(first, "one\n")
	require.NoError(t, first.Close())
	part := s.parts()[0]
	require.NoError(t, os.Remove(part))
	require.NoError(t, os.Symlink(victim, part))
	for _, exclusive := range []bool{true, false} {
		again := s.attempt(2, exclusive)
		require.Error(t, again.Open(context.Background(), at))
		require.NoError(t, again.Close())
	}
	data, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "untouched", string(data))
}

func TestAMovedTargetTakesUpWhatWasCommittedBesideTheOldOne(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	first := s.open(s.attempt(1, true), nil)
	at := s.write(first, "one\n")
	require.NoError(t, first.Close())

	moved := s
	moved.path = filepath.Join(t.TempDir(), "new", "place.txt")
	second := moved.open(moved.attempt(2, true), at)
	moved.write(second, "two\n")
	moved.publish(second)
	moved.inView("one\ntwo\nend\n")
	require.Empty(t, s.parts())
}

func TestAnAttemptThatWakesPublishesNothingThoughThePathHasChanged(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		for _, folder := range []bool{false, true} {
			s := newStep(t)
			frozen := s.open(s.attempt(1, true), nil)
			at := s.write(frozen, "one\n")
			require.NoError(t, frozen.Release(t.Context()))
			left, err := json.Marshal(at)
			require.NoError(t, err)
			if anew {
				at = nil
			}
			moved := s
			moved.path = filepath.Join(filepath.Dir(s.path), "out2.txt")
			if folder {
				moved.path = filepath.Join(t.TempDir(), "out.txt")
			}
			next := NewOutput(OutputConfig{Path: moved.path, Attempt: func(context.Context) (core.Attempt, error) {
				return core.Attempt{Repository: "r", Instance: 1, Step: "load", ID: 2, Left: []item.Position{left, []byte(`{"of":"another kind"}`)}}, nil
			}})
			moved.write(moved.open(next, at), "two\n")
			moved.publish(next)
			require.ErrorContains(t, frozen.Finish(t.Context()), "a later attempt has taken the file over")
			require.NoFileExists(t, s.path)
			require.Empty(t, s.parts())
		}
	}
}

func TestAWriterLeavesTheFilesOfItsNeighboursAlone(t *testing.T) {
	t.Parallel()
	for _, exclusive := range []bool{true, false} {
		s := newStep(t)
		neighbour := s
		neighbour.path = filepath.Join(filepath.Dir(s.path), "neighbour.txt")
		var at [2]*OutputPosition
		var left []item.Position
		for i, of := range []step{s, neighbour} {
			o := of.open(of.attempt(1, true), nil)
			at[i] = of.write(o, "one\n")
			require.NoError(t, o.Release(t.Context()))
			require.NoError(t, o.Close())
			data, err := json.Marshal(at[i])
			require.NoError(t, err)
			left = append(left, data)
		}
		var outs [2]*Output
		for i, of := range []step{s, neighbour} {
			outs[i] = NewOutput(OutputConfig{Path: of.path, Attempt: func(context.Context) (core.Attempt, error) {
				return core.Attempt{Repository: "r", Instance: 1, Step: "load", ID: 2, Exclusive: exclusive, Left: left, From: left}, nil
			}})
			of.open(outs[i], at[i])
		}
		for i, of := range []step{s, neighbour} {
			of.write(outs[i], "two\n")
		}
		for i, of := range []step{s, neighbour} {
			of.publish(outs[i])
			of.inView("one\ntwo\n")
			require.Empty(t, of.parts())
		}
	}
}

func TestWhatIsLeftIsRemovedUpToAnAttempt(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	first := s.open(s.attempt(1, true), nil)
	at := s.write(first, "one\n")
	require.NoError(t, first.Close())
	other := s
	other.name = "another step"
	stranger := other.open(other.attempt(1, true), nil)
	require.NoError(t, stranger.Sync())
	stranger.Position()
	require.NoError(t, stranger.Close())
	later := s.open(s.attempt(3, true), nil)
	left, err := json.Marshal(at)
	require.NoError(t, err)
	require.NoError(t, RemoveLeft(t.Context(), core.Attempt{Repository: "r", Instance: 1, Step: "load", ID: 2}, left))
	require.Len(t, s.parts(), 2)
	s.write(later, "later\n")
	s.publish(later)
	s.inView("later\nend\n")
	require.Len(t, s.parts(), 1, "that of another step")
}

func TestAHistoryThatWasRestoredFromABackupMeetsItsOwnLeftovers(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	for _, id := range []core.StepExecutionID{3, 5} { // lost with the history
		lost := s.open(s.attempt(id, true), nil)
		s.write(lost, "lost\n")
		require.NoError(t, lost.Close())
	}
	again := s.open(s.attempt(3, true), nil)
	s.write(again, "again\n")
	s.publish(again)
	s.inView("again\nend\n")
	require.Len(t, s.parts(), 1, "that of the attempt 5, whose turn comes")
}

func TestANameTooLongForAPartIsRefusedWithItsLength(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("a", 250))
	require.ErrorContains(t, NewOutput(OutputConfig{Path: path}).Open(context.Background(), nil), "the name is too long by 24 bytes")
}

type recorder struct {
	system
	done   []string
	synced map[string]int64
}

func (r *recorder) note(what, name string) { r.done = append(r.done, what+" "+filepath.Base(name)) }

func (r *recorder) Sync(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r.synced[f.Name()] = info.Size()
	r.note("sync", "part")
	return r.system.Sync(f)
}

func (r *recorder) SyncDir(dir string) error {
	r.note("sync", dir)
	return r.system.SyncDir(dir)
}

func (r *recorder) Rename(from, to string) error {
	r.note("rename to", to)
	return r.system.Rename(from, to)
}

func (r *recorder) Remove(name string) error {
	r.note("remove", "part")
	return r.system.Remove(name)
}

func TestWhatAPositionCoversAndEveryNameSurviveACrash(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	s.path = filepath.Join(t.TempDir(), "a", "b", "out.txt")
	disk := &recorder{synced: map[string]int64{}}
	observed := func(o *Output) *Output {
		o.disk = disk
		return o
	}
	root := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(s.path))))

	first := s.open(observed(s.attempt(1, true)), nil)
	require.Equal(t, []string{"sync " + root, "sync a", "sync b"}, disk.done, "the folders and the new name")
	at := s.write(first, "one\n")
	require.Equal(t, at.Offset, disk.synced[s.path+at.Part])
	s.write(first, "not committed\n")

	// A copy is synced before the position that names it, though nothing is written.
	second := s.open(observed(s.attempt(2, false)), at)
	disk.done = nil
	require.NoError(t, second.Sync())
	copied := second.Position()
	require.Equal(t, copied.Offset, disk.synced[s.path+copied.Part])
	require.NotEqual(t, at.Part, copied.Part)
	s.publish(second)
	require.Equal(t, []string{"sync part", "remove part", "sync part", "rename to out.txt", "sync b"}, disk.done)
	require.Equal(t, int64(len("one\nend\n")), disk.synced[s.path+copied.Part], "the trailer is synced before the rename")

	// A truncation at a restart is on the disk before the next position.
	s = newStep(t)
	first = s.open(observed(s.attempt(1, true)), nil)
	at = s.write(first, "one\n")
	s.write(first, "not committed\n")
	require.NoError(t, first.Close())
	third := s.open(observed(s.attempt(2, true)), at)
	require.NoError(t, third.Sync())
	require.Equal(t, at.Offset, disk.synced[s.path+at.Part])
	data, err := os.ReadFile(s.path + at.Part)
	require.NoError(t, err)
	require.Equal(t, "one\n", string(data), "what was not committed is cut")
}

func TestNamesOfPartsDiffer(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	a, err := partName(s.path, core.Attempt{Step: "a", ID: 12}, false)
	require.NoError(t, err)
	b, err := partName(s.path, core.Attempt{Step: "a", ID: 12}, false)
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	for _, name := range []string{a, b} {
		rest, is := strings.CutPrefix(name, s.path)
		require.True(t, is)
		require.Equal(t, "12", partPattern().FindStringSubmatch(rest)[2])
	}
	require.False(t, slices.ContainsFunc([]string{".part", ".part.x", ".partial"}, partPattern().MatchString))
}

func TestAFileIsItsUsersAloneUnlessTheConfigSaysMore(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]os.FileMode{0: 0o600, 0o640: 0o640} {
		s := newStep(t)
		o := s.attempt(1, true)
		o.cfg.Mode = mode
		s.publish(s.open(o, nil))
		info, err := os.Stat(s.path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm())
	}
}
