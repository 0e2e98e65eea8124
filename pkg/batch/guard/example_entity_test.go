package guard_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Status is the application's own enumeration, stored as a number.
type Status int

// The states of an order.
const (
	Created Status = iota
	PaymentPending
	Paid
	Cancelled
)

func (s Status) String() string { return []string{"Created", "PaymentPending", "Paid", "Cancelled"}[s] }

// newOrders guards the table as the application has it: a UUID, a number, and nothing for the guard.
func newOrders(db tx.Database) (*guard.Table[Status], error) {
	machine, err := core.NewMachine("order",
		core.Move[Status]{Name: "PaymentRequested", From: []Status{Created}, To: PaymentPending, Intent: core.IntentBegin},
		core.Move[Status]{Name: "PaymentWithdrawn", From: []Status{PaymentPending}, To: Created, Intent: core.IntentRelease},
		core.Move[Status]{Name: "PaymentSucceeded", From: []Status{PaymentPending}, To: Paid, Intent: core.IntentEnd},
		core.Move[Status]{Name: "CancelRequested", From: []Status{Created, PaymentPending}, To: Cancelled, Intent: core.IntentEnd})
	if err != nil {
		return nil, err
	}
	return guard.NewTable(db, "orders", machine, nil, guard.WithColumns(guard.Columns{Key: "order_id", State: "status"})), nil
}

// succeeded handles the event PaymentSucceeded in a transaction of the application's own.
func succeeded(ctx context.Context, pool *sql.DB, orders *guard.Table[Status], id string) (applied bool, err error) {
	own, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	joined, ended, err := tx.Join(ctx, orders.Database(), own)
	if err != nil {
		return false, err
	}
	got, err := orders.Move(joined, guard.Request{Key: id, Move: "PaymentSucceeded", Set: []guard.Assignment{guard.SetSQL("updated_at", "CURRENT_TIMESTAMP")}})
	if err == nil && got.Answer == core.Applied {
		_, err = own.ExecContext(joined, "INSERT INTO mails (order_id) VALUES (?)", id)
	}
	if err != nil {
		_ = own.Rollback()
		ended(false)
		return false, err
	}
	err = own.Commit()
	ended(err == nil)
	return got.Answer == core.Applied, err
}

// An event that arrives twice is applied once, with what the application writes for it.
func Example_entity() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "guard")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	pool, err := sql.Open("sqlite", filepath.Join(dir, "shop.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	must(err)
	defer func() { must(pool.Close()) }()
	for _, statement := range []string{
		"CREATE TABLE orders (order_id text PRIMARY KEY, status int NOT NULL, updated_at text)", "CREATE TABLE mails (order_id text)",
		"INSERT INTO orders VALUES ('0192f0c1-7b1e-7c3a-9d55-1c2b3a4d5e6f', 1, NULL)",
	} {
		_, err := pool.ExecContext(ctx, statement)
		must(err)
	}
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {Lent: gormdb.Lend(pool)}})
	must(err)
	defer func() { must(provider.Close()) }()
	db, err := provider.Database(tx.Default)
	must(err)
	orders, err := newOrders(db)
	must(err)

	for range 2 {
		applied, err := succeeded(ctx, pool, orders, "0192f0c1-7b1e-7c3a-9d55-1c2b3a4d5e6f")
		fmt.Println(applied, err)
	}
	got, err := orders.Move(ctx, guard.Request{Key: "0192f0c1-7b1e-7c3a-9d55-1c2b3a4d5e6f", Move: "PaymentWithdrawn"})
	fmt.Println(got.Answer, got.State, err)
	// Output:
	// true <nil>
	// false <nil>
	// duplicate Paid <nil>
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
