package text

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// FuzzReader reads garbage to its end, and again from each position: the same items, and no
// panic.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{dirty, "", "HEAD", "HEAD\nT0000000\n", "HEAD\r\nD00001Ada\r\n", "HEAD\nD\x00\xff\u0085\nT-000001\n"} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, content string, short bool) {
		cfg := readerConfig(fileOf(t, content))
		cfg.Short, cfg.MaxLine = short, 100
		first := fixedReader(t, cfg)
		if first.Component().(item.Opener).Open(t.Context(), nil) != nil {
			return // it has no header
		}
		whole := readOn(t, first)
		require.NoError(t, first.Component().(item.Closer).Close(t.Context()))
		for i, at := range whole.at {
			again := fixedReader(t, cfg)
			require.NoError(t, again.Component().(item.Opener).Open(t.Context(), at))
			rest := readOn(t, again)
			require.Equal(t, whole.texts[i+1:], rest.texts)
			require.NoError(t, again.Component().(item.Closer).Close(t.Context()))
		}
	})
}

// reading is what a reader delivered, its end last, and its position behind each item.
type reading struct {
	texts []string
	at    []item.Position
}

func readOn(t *testing.T, r item.Reader) (all reading) {
	for {
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		switch {
		case err == nil:
			all.texts = append(all.texts, texts(items.At(0)))
		case item.IsConsumed(err):
			all.texts = append(all.texts, err.Error())
		default:
			if !errors.Is(err, io.EOF) {
				require.ErrorContains(t, err, "in.txt:")
			}
			all.texts = append(all.texts, err.Error())
			return all
		}
		at, err := r.Component().(item.Positioner).Position()
		require.NoError(t, err)
		all.at = append(all.at, at)
	}
}
