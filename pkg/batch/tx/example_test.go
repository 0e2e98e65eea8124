package tx_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Joined work takes part in the existing transaction; a nested one may fail without it.
func ExampleManager_Do() {
	_, db, done := testexample.SQLite("create table account(name text primary key, cents int)")
	defer done()
	manager := tx.NewManager(db)
	open := func(ctx context.Context, name string) error {
		_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "insert into account values (?, 0)", name)
		return err
	}

	err := manager.Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
		if err := open(ctx, "ada"); err != nil {
			return err
		}
		err := manager.Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error {
			return errors.Join(open(ctx, "grace"), errors.New("not today"))
		})
		fmt.Println("nested:", err)
		return open(ctx, "joan")
	})
	fmt.Println("outer:", err)
	fmt.Println(testexample.Text(db, "select group_concat(name, ' and ') from account"))
	// Output:
	// nested: not today
	// outer: <nil>
	// ada and joan
}

// Code that needs its caller's transaction uses MANDATORY.
func ExampleManager_Do_mandatory() {
	_, db, done := testexample.SQLite()
	defer done()
	err := tx.NewManager(db).Do(context.Background(), tx.Attr{Propagation: tx.Mandatory}, func(context.Context) error { return nil })
	fmt.Println(errors.Is(err, tx.ErrNoTransaction))
	// Output: true
}
