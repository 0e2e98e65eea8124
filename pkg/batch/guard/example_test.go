package guard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// An order is paid once, however often the event arrives.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "guard")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: "sqlite:" + filepath.Join(dir, "shop.db")}})
	must(err)
	defer func() { must(provider.Close()) }()
	db, err := provider.Database(tx.Default)
	must(err)
	for _, statement := range []string{
		`CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL, state_before text NOT NULL DEFAULT '', version bigint NOT NULL DEFAULT 0,
			epoch bigint NOT NULL DEFAULT 1, last_move text NOT NULL DEFAULT '', last_epoch bigint NOT NULL DEFAULT 0, paid_by text NOT NULL DEFAULT '')`,
		"INSERT INTO orders (id, state) VALUES (1, 'PaymentPending')",
	} {
		_, err = db.Conn().ExecContext(ctx, statement)
		must(err)
	}

	type State string
	machine, err := core.NewMachine("order",
		core.Move[State]{Name: "pay", From: []State{"PaymentPending"}, To: "Paid", Intent: core.IntentBegin},
		core.Move[State]{Name: "hand_over", From: []State{"Paid"}, To: "Completed", Intent: core.IntentEnd},
		core.Move[State]{Name: "cancel", From: []State{"PaymentPending"}, To: "Cancelled", Intent: core.IntentEnd})
	must(err)
	orders := guard.NewTable(db, "orders", machine, nil)
	for range 2 {
		got, err := orders.Move(ctx, guard.Request{ID: 1, Move: "pay", Set: []guard.Assignment{guard.Set("paid_by", "ada")}})
		fmt.Println(got.Answer, got.State, err)
	}
	got, err := orders.Move(ctx, guard.Request{ID: 1, Move: "cancel"})
	fmt.Println(got.Answer, got.State)
	fmt.Println(err)
	// Output:
	// applied Paid <nil>
	// duplicate Paid <nil>
	// rejected Paid
	// order 1: transition to Cancelled refused: it is Paid, allowed from [PaymentPending]
}
