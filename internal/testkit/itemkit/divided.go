package itemkit

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Divided checks that parts of a file of rows, however many, together have the items of one reader, each resumed after every
// second item (rule P9). It returns the most parts.
func Divided(t testing.TB, reader func() item.Reader) (most int) {
	t.Helper()
	want := readAll(t, reader, nil)
	for n := range 6 {
		_, parts, err := filestream.AsDivider(reader()).Divide(t.Context(), partcount.Wanted{Number: partcount.Number(n + 1)})
		require.NoError(t, err)
		var got []string
		for i := range parts {
			got = append(got, readAll(t, reader, &parts[i])...)
		}
		require.Equal(t, want, got, "in %d parts", n+1)
		most = max(most, len(parts))
	}
	return most
}

func readAll(t testing.TB, reader func() item.Reader, part *filestream.Range) (all []string) {
	t.Helper()
	var at item.Position
	for {
		r := reader()
		if part != nil {
			require.NoError(t, filestream.AsDivider(r).Confine(*part))
		}
		require.NoError(t, r.Component().(item.Opener).Open(t.Context(), at))
		more, ended := readSome(t, r, part != nil)
		all = append(all, more...)
		var err error
		at, err = r.Component().(item.Positioner).Position()
		require.NoError(t, err)
		require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
		if ended {
			return all
		}
	}
}

func readSome(t testing.TB, r item.Reader, two bool) (some []string, ended bool) {
	t.Helper()
	for !two || len(some) < 2 {
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		switch {
		case errors.Is(err, io.EOF):
			return some, true
		case item.IsConsumed(err):
			some = append(some, err.Error())
		default:
			require.NoError(t, err)
			some = append(some, fmt.Sprint(items.Meta(0).Line, items.At(0).(item.Row).Values()))
		}
	}
	return some, false
}
