package migration_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Migrations inside the application; an embed.FS is one.
func ExampleNew() {
	provider, db, done := testexample.SQLite()
	defer done()
	source := migration.Source{Name: "shop", FS: fstest.MapFS{
		"1_customer.up.sql":   {Data: []byte("create table customer(id int primary key)")},
		"1_customer.down.sql": {Data: []byte("drop table customer")},
	}}
	tasklet, err := migration.New(provider, []migration.Source{source}, migration.Config{Source: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), testexample.Text(db, "select count(*) from customer"))
	// Output: <nil> 0
}

// A step of a job in Go: the tasklet is a core.Tasklet.
func ExampleMigrationTasklet() {
	provider, _, done := testexample.SQLite()
	defer done()
	source := migration.Source{Name: "shop", FS: fstest.MapFS{
		"1_customer.up.sql":   {Data: []byte("create table customer(id int primary key)")},
		"1_customer.down.sql": {Data: []byte("drop table customer")},
	}}
	var tasklet *migration.MigrationTasklet
	tasklet, err := migration.New(provider, []migration.Source{source}, migration.Config{Source: "shop"})
	var step core.Tasklet = tasklet
	fmt.Printf("%T %v\n", step, err)
	// Output: *migration.MigrationTasklet <nil>
}
