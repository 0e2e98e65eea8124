package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestSchemaVersionIsTheNewestMigrationOfEveryDialect(t *testing.T) {
	t.Parallel()
	for _, d := range []tx.Dialect{tx.SQLite, tx.Postgres} {
		latest, err := migrator.Latest(migrations, "migrations/"+string(d))
		require.NoError(t, err)
		require.Equal(t, uint(schemaVersion), latest, d)
	}
}

func TestPrefixIsFilledIntoMigrationsWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	fsys := prefixed{migrations, "p_"}
	entries, err := fs.ReadDir(fsys, "migrations/sqlite")
	require.NoError(t, err)
	for _, e := range entries {
		text, err := fs.ReadFile(fsys, "migrations/sqlite/"+e.Name())
		require.NoError(t, err)
		require.Contains(t, string(text), `"p_`)
		require.NotContains(t, string(text), prefixMark)
		info, err := fs.Stat(fsys, "migrations/sqlite/"+e.Name())
		require.NoError(t, err)
		require.Equal(t, int64(len(text)), info.Size())
	}
	_, err = fs.ReadFile(fsys, "migrations/sqlite/none.sql")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestStorableTextIsValidWhateverItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "text"))
		text = strings.Repeat(text, rapid.IntRange(1, 400).Draw(t, "times"))
		stored := storable(text)
		if !utf8.ValidString(stored) || strings.Contains(stored, "\x00") || len(stored) > maxMessageBytes+60 {
			t.Fatalf("%q became %q", text, stored)
		}
		if utf8.ValidString(text) && !strings.Contains(text, "\x00") && len(text) <= maxMessageBytes && stored != text {
			t.Fatalf("%q was changed to %q", text, stored)
		}
	})
}

func TestResultsSurviveTheirStoredForm(t *testing.T) {
	t.Parallel()
	value := rapid.OneOf(
		rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(), rapid.String().AsAny(),
		rapid.SampledFrom([]any{0.0, -1.0, 1e15, 1e21, 1e-9, nil}),
	)
	rapid.Check(t, func(t *rapid.T) {
		out := rapid.MapOfN(rapid.String(), value, 1, 5).Draw(t, "out")
		text, err := encodeOut(out)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeOut(text)
		if err != nil || fmt.Sprintf("%#v", back) != fmt.Sprintf("%#v", out) {
			t.Fatalf("%#v became %#v by %s (%v)", out, back, text, err)
		}
	})
}

func TestInstantIsReadFromBothDialects(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 11, 21, 9, 30, 0, 123456000, time.UTC)
	for _, stored := range []any{want.UnixMicro(), want.In(time.FixedZone("CET", 3600))} {
		var i instant
		require.NoError(t, i.Scan(stored))
		require.Equal(t, want, i.Time)
	}
	i := instant{Time: want}
	require.NoError(t, i.Scan(nil))
	require.True(t, i.IsZero())
	require.ErrorContains(t, i.Scan("noon"), "not a point in time")
	_, err := clock(0).Value()
	require.Error(t, err)
}

// The list of files of a step must be found again: a secret may be a part of its key, or of a value that only the
// framework reads.
func TestASecretThatIsAPartOfAKeyLeavesTheKey(t *testing.T) {
	t.Parallel()
	s := (&store{}).masking(strings.NewReplacer("surfin", "***", "abcd", "***").Replace)
	c := core.NewExecutionContext()
	require.NoError(t, errors.Join(c.Put("surfin.files", "xxabcdxx"), c.Put("note", "abcd of surfin"), c.Put("n", 7)))
	text, err := c.Encode()
	require.NoError(t, err)
	stored, err := core.ParseExecutionContext([]byte(s.mask(string(text))))
	require.NoError(t, err)
	for key, want := range map[string]any{"surfin.files": "xxabcdxx", "note": "*** of ***", "n": int64(7)} {
		value, _ := stored.Get(key)
		require.Equal(t, want, value)
	}
	require.Equal(t, "*** is down", s.mask("surfin is down"))
}
