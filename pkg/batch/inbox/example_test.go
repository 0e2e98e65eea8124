package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// State is the state of an order.
type State string

// Payments come twice and too early; each is applied once, when it can be.
func Example() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "inbox")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: "sqlite:" + filepath.Join(dir, "shop.db")}})
	must(err)
	defer func() { must(provider.Close()) }()
	db, err := provider.Database(tx.Default)
	must(err)
	must(repository.New(db, repository.Options{}).Migrate(ctx)) // the table of events belongs to the history
	_, err = db.Conn().ExecContext(ctx, `CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL, state_before text NOT NULL DEFAULT '',
		version bigint NOT NULL DEFAULT 0, epoch bigint NOT NULL DEFAULT 1, last_move text NOT NULL DEFAULT '', last_epoch bigint NOT NULL DEFAULT 0)`)
	must(err)

	machine, err := core.NewMachine("order",
		core.Move[State]{Name: "ask", From: []State{"Created"}, To: "PaymentPending", Intent: core.IntentBegin},
		core.Move[State]{Name: "pay", From: []State{"PaymentPending"}, To: "Paid", Intent: core.IntentEnd})
	must(err)
	orders := guard.NewTable(db, "orders", machine, nil)
	box := inbox.New(orders, repository.DefaultPrefix, inbox.Options{})
	handle := func(ctx context.Context, e inbox.Event) (guard.Result[State], error) {
		var move string
		if err := e.Decode(&move); err != nil {
			return guard.Result[State]{}, err
		}
		return orders.Move(ctx, guard.Request{ID: e.Subject, Move: move})
	}

	_, err = db.Conn().ExecContext(ctx, "INSERT INTO orders (id, state) VALUES (1, 'Created')")
	must(err)
	for _, e := range []inbox.Event{
		{Topic: "payments", Subject: 1, DedupeKey: "a", Payload: json.RawMessage(`"pay"`)},
		{Topic: "payments", Subject: 1, DedupeKey: "a", Payload: json.RawMessage(`"pay"`)},
		{Topic: "payments", Subject: 1, DedupeKey: "b", Payload: json.RawMessage(`"ask"`)},
	} {
		answer, err := box.Receive(ctx, e)
		must(err)
		fmt.Println(e.DedupeKey, answer)
	}
	done, err := box.Process(ctx, "payments", handle)
	must(err)
	fmt.Printf("%+v\n", done)
	// Output:
	// a applied
	// a duplicate
	// b applied
	// {Applied:2 Duplicate:0 Rejected:1 Failed:0 Dead:0}
}
