package guard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Columns names the columns of a table, unquoted (rule SM1).
type Columns struct {
	// ID is an integer key, named by Request.ID. Key is a key of another type, such as uuid, named by
	// Request.Key. A table has one of both.
	ID, Key string
	// State is a text or an integer, like the states of the machine. It is required.
	State string

	// The other columns are optional; "" means that the table does not have it.

	// StateBefore is also a text or an integer. Without it, a move that leads from several states tries
	// them one after the other, and its Moved.Before is unknown.
	StateBefore string
	// Version is an integer, raised by every move. Package inbox needs it.
	Version string
	// Epoch is an integer, raised by moves of core.IntentTake. Without it such a move is like any
	// other, and a Request.Epoch is refused.
	Epoch string
	// LastMove is a text and LastEpoch an integer: the row's last move, and the epoch before it. With
	// them a row in a circle of states knows its last move. LastEpoch needs both others, and LastMove
	// needs LastEpoch if there is an Epoch.
	LastMove, LastEpoch string
}

// defaultColumns returns the default columns: id, state, state_before, version, epoch, last_move and
// last_epoch.
func defaultColumns() Columns {
	return Columns{ID: "id", State: "state", StateBefore: "state_before", Version: "version", Epoch: "epoch", LastMove: "last_move", LastEpoch: "last_epoch"}
}

// check reports all errors.
func (c Columns) check() error {
	var errs []error
	switch {
	case c.ID == "" && c.Key == "":
		errs = append(errs, errors.New("a key is required: ID for an integer, Key for another type"))
	case c.ID != "" && c.Key != "":
		errs = append(errs, fmt.Errorf("a table has one key, but ID is %s and Key is %s", c.ID, c.Key))
	}
	if c.State == "" {
		errs = append(errs, errors.New("a column for the state is required: State"))
	}
	if c.LastEpoch != "" && (c.LastMove == "" || c.Epoch == "") {
		errs = append(errs, fmt.Errorf("LastEpoch (%s) needs LastMove and Epoch", c.LastEpoch))
	}
	if c.LastMove != "" && c.Epoch != "" && c.LastEpoch == "" {
		errs = append(errs, fmt.Errorf("LastMove (%s) needs LastEpoch, because there is an Epoch", c.LastMove))
	}
	return errors.Join(errs...)
}

// quoted returns the columns quoted for SQL. SQLite takes an unknown name in double quotes for a text,
// which would be a row that is never found: there names are in backticks.
func (c Columns) quoted(d tx.Dialect) Columns {
	mark := `"`
	if d == tx.SQLite {
		mark = "`"
	}
	quote := func(name string) string {
		if name == "" {
			return ""
		}
		return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
	}
	return Columns{
		ID: quote(c.ID), Key: quote(c.Key), State: quote(c.State), StateBefore: quote(c.StateBefore), Version: quote(c.Version),
		Epoch: quote(c.Epoch), LastMove: quote(c.LastMove), LastEpoch: quote(c.LastEpoch),
	}
}

func (c Columns) key() string { return c.ID + c.Key }

// Option changes how a Table works.
type Option func(*options)

type options struct {
	columns Columns
	strict  bool
	wait    time.Duration
}

// WithColumns sets the columns of the table.
func WithColumns(c Columns) Option { return func(o *options) { o.columns = c } }

// Strict ignores only the row's very last move: a move that it has passed, and any move of a row that
// rests, is a rejection. The framework's own rows move so.
func Strict() Option { return func(o *options) { o.strict = true } }

// Wait bounds how long a move outside a transaction waits for a row, or for the one writer of SQLite,
// that another transaction holds; 0 means as long as the context allows. Without this option it is 5 s.
// It ends a move that waits for a transaction of its own caller, which did not join it (tx.Join).
func Wait(limit time.Duration) Option { return func(o *options) { o.wait = limit } }

const defaultWait = 5 * time.Second
