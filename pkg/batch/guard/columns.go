package guard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Columns are unquoted names (rule SM1).
type Columns struct {
	// ID is an integer key (Request.ID), Key another type (Request.Key); one of both.
	ID, Key string
	// State is required: text or integer.
	State string

	// Optional; "" means absent.

	// StateBefore: without it, moves from several states try each, and Moved.Before is unknown.
	StateBefore string
	// Version is raised by every move; inbox needs it.
	Version string
	// Epoch is raised by core.IntentTake; without it Request.Epoch is refused.
	Epoch string
	// LastMove and LastEpoch, the epoch before it, let a row in a circle know its last move. LastEpoch needs
	// both others; LastMove needs LastEpoch if there is an Epoch.
	LastMove, LastEpoch string
}

// DefaultColumns returns the default names.
func DefaultColumns() Columns {
	return Columns{ID: "id", State: "state", StateBefore: "state_before", Version: "version", Epoch: "epoch", LastMove: "last_move", LastEpoch: "last_epoch"}
}

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

// SQLite takes an unknown name in double quotes for a text: backticks there.
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

// Option changes a Table.
type Option func(*options)

type options struct {
	columns Columns
	strict  bool
	wait    time.Duration
}

// WithColumns sets the columns of the table.
func WithColumns(c Columns) Option { return func(o *options) { o.columns = c } }

// Strict ignores only the row's last move; a passed move or a resting row rejects. Used for the framework's
// rows.
func Strict() Option { return func(o *options) { o.strict = true } }

// Wait bounds a move outside a transaction; 0 means the context, default 5 s. It ends a wait for the caller's
// own transaction, not joined (tx.Join).
func Wait(limit time.Duration) Option { return func(o *options) { o.wait = limit } }

const defaultWait = 5 * time.Second

type line[S core.StateType] struct {
	core.Move[S]
	from   []any
	to     any
	fromAs []core.Status // for display
	toAs   core.Status
}

func linesOf[S core.StateType](m core.Machine[S]) map[string]*line[S] {
	lines := map[string]*line[S]{}
	for _, move := range m.Moves() {
		l := &line[S]{Move: move, to: bound(move.To), toAs: core.Status(core.StateText(move.To))}
		for _, from := range move.From {
			l.from = append(l.from, bound(from))
			l.fromAs = append(l.fromAs, core.Status(core.StateText(from)))
		}
		lines[move.Name] = l
	}
	return lines
}
