package filestream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// These tests are about rule C15v: a file that is made of a journal.

// backwards makes a file that cannot be continued.
type backwards struct{}

func (backwards) Make(_ context.Context, journal *bufio.Reader, file io.Writer) error {
	text, err := io.ReadAll(journal)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%d:", len(text))
	for len(text) > 0 && err == nil {
		at := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		_, err = file.Write(text[at:])
		text = text[:at]
	}
	return err
}

func (backwards) Check(file io.ReaderAt, size int64) error {
	head := make([]byte, 1)
	if _, err := file.ReadAt(head, 0); err != nil {
		return err
	}
	if _, err := file.ReadAt(head, size); !errors.Is(err, io.EOF) {
		return errors.New("it does not end where it should")
	}
	return nil
}

func (s step) maker(id core.StepExecutionID, exclusive bool) *Output {
	o := s.attempt(id, exclusive)
	o.cfg.Maker, o.cfg.Trailer = backwards{}, nil
	return o
}

// mortal dies at an operation, and everything after it fails.
type mortal struct {
	system
	left int
}

var errDead = errors.New("killed")

func (m *mortal) dies() bool {
	m.left--
	return m.left < 0
}

func (m *mortal) Sync(f *os.File) error {
	if m.dies() {
		return errDead
	}
	return m.system.Sync(f)
}

func (m *mortal) SyncDir(dir string) error {
	if m.dies() {
		return errDead
	}
	return m.system.SyncDir(dir)
}

func (m *mortal) Rename(from, to string) error {
	if m.dies() {
		return errDead
	}
	return m.system.Rename(from, to)
}

func (m *mortal) Remove(name string) error {
	if m.dies() {
		return errDead
	}
	return m.system.Remove(name)
}

// run writes the lines that are not committed, and publishes, as a step does. It returns the last committed position.
func (s step) run(o *Output, at *OutputPosition) (*OutputPosition, error) {
	ctx := s.t.Context()
	defer o.Close() //nolint:errcheck // it may be dead
	if err := o.Open(ctx, at); err != nil {
		return at, err
	}
	commit := func() error {
		if err := o.Sync(); err != nil {
			return err
		}
		now := o.Position()
		at = &now
		return o.Release(ctx)
	}
	for _, line := range []string{"one\n", "two\n", "three\n", ""} {
		if !o.Finished() && line != "" {
			if at != nil && at.Offset >= map[string]int64{"one\n": 4, "two\n": 8, "three\n": 14}[line] {
				continue
			}
			if _, err := o.Write([]byte(line)); err != nil {
				return at, err
			}
		}
		if err := commit(); err != nil {
			return at, err
		}
	}
	staged, err := o.Stage(ctx)
	if err == nil && staged {
		err = commit()
	}
	if err != nil {
		return at, err
	}
	return at, o.Finish(ctx)
}

const madeText = "14:three\ntwo\none\n"

func TestAMadeFileIsWholeWhereverItsAttemptDies(t *testing.T) {
	t.Parallel()
	for _, exclusive := range []bool{true, false} {
		for dies, done := 0, false; !done; dies++ {
			s := newStep(t)
			o := s.maker(1, true)
			o.disk = &mortal{left: dies}
			at, err := s.run(o, nil)
			if done = err == nil; !done {
				require.ErrorIs(t, err, errDead)
				_, err := os.Stat(s.path)
				require.True(t, err != nil || at.Made != nil, "it is published before its position is committed")
			}
			_, err = s.run(s.maker(2, exclusive), at)
			require.NoError(t, err, "died at operation %d", dies)
			s.inView(madeText)
			require.Empty(t, s.parts(), "died at operation %d", dies)
		}
	}
}

func TestAFrozenAttemptCannotPublishTheFileThatItHasMade(t *testing.T) {
	t.Parallel()
	for _, staged := range []bool{false, true} {
		s := newStep(t)
		frozen := s.open(s.maker(1, true), nil)
		at := s.write(frozen, "one\n")
		require.NoError(t, frozen.Release(t.Context()))
		if staged {
			_, err := frozen.Stage(t.Context())
			require.NoError(t, err)
			now := frozen.Position()
			at = &now
			require.NoError(t, frozen.Release(t.Context()))
		}
		_, err := s.run(s.maker(2, false), at)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(s.path, []byte("of another instance\n"), 0o600))

		_, err = frozen.Stage(t.Context())
		require.NoError(t, err, "it has its journal open")
		require.ErrorContains(t, frozen.Finish(t.Context()), "a later attempt has taken the file over")
		require.NoError(t, frozen.Close())
		s.inView("of another instance\n")
		require.Empty(t, s.parts())
	}
}

func TestAJournalThatWasChangedIsNoFile(t *testing.T) {
	t.Parallel()
	s := newStep(t)
	o := s.open(s.maker(1, true), nil)
	at := s.write(o, "one\n")
	require.NoError(t, os.WriteFile(s.path+at.Part, []byte("uno\n"), 0o600))
	_, err := o.Stage(t.Context())
	require.ErrorContains(t, err, "the 4 committed bytes of "+s.path+at.Part+" have changed since")

	o = s.maker(1, true)
	o.cfg.Path = core.StdPath
	require.ErrorContains(t, o.Open(t.Context(), nil), "cannot be the standard output")
}
