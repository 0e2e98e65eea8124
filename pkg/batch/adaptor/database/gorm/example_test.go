package gormdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"gorm.io/gorm"
	gormtests "gorm.io/gorm/utils/tests"

	"github.com/surfin-batch/surfin/internal/testexample"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Every database has a name; job files and components use it.
func ExampleOpen() {
	dir, done := testexample.Dir()
	defer done()
	ctx := context.Background()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{
		tx.Default: {URL: "sqlite:" + filepath.Join(dir, "main.db")},
		"scratch":  {URL: "sqlite:" + filepath.Join(dir, "scratch.db"), MaxOpen: 2},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { testexample.Check(provider.Close()) }()

	db, err := provider.Database("scratch")
	testexample.Check(err)
	fmt.Println(provider.Names(), db.Dialect())
	_, err = provider.Database("scratsh")
	fmt.Println(err)
	// Output:
	// [default scratch] sqlite
	// database "scratsh" is not configured (configured: default, scratch)
}

// The application has opened a pool, and closes it.
func ExampleLend() {
	dir, done := testexample.Dir()
	defer done()
	ctx := context.Background()
	pool, err := sql.Open("sqlite", filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)")
	testexample.Check(err)
	defer func() { testexample.Check(pool.Close()) }()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {Lent: gormdb.Lend(pool)}})
	testexample.Check(err)
	db, err := provider.Database(tx.Default)
	testexample.Check(err)
	_, err = db.Conn().ExecContext(ctx, "create table bird (name text)")
	testexample.Check(err)
	testexample.Check(provider.Close())
	_, err = pool.ExecContext(ctx, "insert into bird values ('owl')")
	fmt.Println(err)
	// Output: <nil>
}

// All that is wrong is reported together.
func ExampleOpen_refused() {
	_, err := gormdb.Open(context.Background(), map[string]gormdb.Config{
		"a": {URL: "sqlite::memory:"},
		"b": {URL: "postgres://db.example.org/orders", MaxOpen: 1},
	})
	fmt.Println(err)
	// Output:
	// database a: SQLite in memory is not supported: each connection would have its own database; name a file
	// database b: max_open is 1, but must be at least 3: a running step needs two connections, and one more is reserved
}

// gorm on the transaction that is there.
func ExampleSession() {
	_, db, done := testexample.SQLite("create table account(name text primary key, cents int)")
	defer done()
	type account struct {
		Name  string
		Cents int64
	}
	err := tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
		session, err := gormdb.Session(ctx, db)
		if err != nil {
			return err
		}
		return session.Table("account").Create(&account{"ada", 100}).Error
	})
	fmt.Println(err, testexample.Text(db, "select name from account"))
	// Output: <nil> ada
}

// The application has its own gorm; the framework's work within its transaction is committed or rolled back
// with it.
func ExampleTransaction() {
	dir, done := testexample.Dir()
	defer done()
	ctx := context.Background()
	pool, err := sql.Open("sqlite", filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)&_txlock=immediate")
	testexample.Check(err)
	defer func() { testexample.Check(pool.Close()) }()
	own, err := gorm.Open(dialector(), &gorm.Config{ConnPool: pool})
	testexample.Check(err)
	testexample.Check(own.Exec("create table bird (name text primary key)").Error)
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {Lent: gormdb.Lend(pool)}})
	testexample.Check(err)
	defer func() { testexample.Check(provider.Close()) }()
	db, err := provider.Database(tx.Default)
	testexample.Check(err)

	err = gormdb.Transaction(ctx, db, own, func(ctx context.Context, session *gorm.DB) error {
		if err := session.Exec("insert into bird values ('owl')").Error; err != nil {
			return err
		}
		// A move of a guarded row, or App.Tasks.Submit, also takes the transaction from ctx.
		_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "insert into bird values ('wren')")
		return errors.Join(err, errors.New("undone"))
	})
	fmt.Println(err, testexample.Text(db, "select count(*) from bird"))
	// Output: undone 0
}

// dialector stands for the application's dialector, such as gorm.io/driver/sqlite.
func dialector() gorm.Dialector { return gormtests.DummyDialector{} }
