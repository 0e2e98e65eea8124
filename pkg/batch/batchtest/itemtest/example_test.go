package itemtest_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// countdown is a reader that can be restarted.
type countdown struct{ left int }

func (c *countdown) Open(_ context.Context, at item.Position) error {
	if at == nil {
		return nil
	}
	_, err := fmt.Sscanf(string(at), "%d", &c.left)
	return err
}

func (c *countdown) Read(context.Context) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	c.left--
	return c.left, nil
}

func (c *countdown) Position() (item.Position, error) {
	return item.Position(fmt.Sprint(c.left)), nil
}

// An example of a reader's test.
func ExampleReader() {
	_ = func(t *testing.T) { // func TestCountdown(t *testing.T)
		itemtest.Reader(t, itemtest.ReaderConfig{
			New:  func(testing.TB) item.Reader { return item.EraseReader[int](&countdown{left: 3}) },
			Want: []any{2, 1, 0},
		})
	}
}

func TestTheReaderOfTheExampleKeepsTheContract(t *testing.T) {
	t.Parallel()
	itemtest.Reader(t, itemtest.ReaderConfig{
		New:  func(testing.TB) item.Reader { return item.EraseReader[int](&countdown{left: 3}) },
		Want: []any{2, 1, 0},
	})
}
